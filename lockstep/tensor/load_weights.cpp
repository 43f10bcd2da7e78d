// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/load_weights.h"

#include <vector>

#include <c10/util/Exception.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/prefix_fit.h"

namespace lockstep {
namespace {

std::vector<std::string> keys_of(const ckpt::Value& weights) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : weights.as_dict()->items) {
    if (const std::string* name = key.as_string()) {
      keys.push_back(*name);
    }
  }
  return keys;
}

} // namespace

LoadReport load_weights(
    torch::nn::Module& module,
    const std::string& path,
    const LoadWeightsOptions& options,
    FileSystem& fs) {
  const Checkpoint file = load(
      path,
      {.map_location = options.map_location, .byteorder = options.byteorder},
      fs);
  const FoundWeights found = find_state_dict(file.root());
  if (found.is_uncalled) {
    TORCH_WARN(escape(path), " ", ckpt::kUncalledText);
  }
  const ckpt::Value& weights = found.weights;
  if (options.by_position) {
    return load_state_dict(
        module,
        weights,
        {.strict = options.strict,
         .by_position = true,
         .may_differ = options.may_differ});
  }
  const PrefixFit fit = fit_prefix(state_dict(module).keys(), keys_of(weights));
  return load_state_dict(
      module,
      weights,
      {.strict = options.strict,
       .strip_prefix = fit.strip,
       .add_prefix = fit.add,
       .may_differ = options.may_differ});
}

} // namespace lockstep
