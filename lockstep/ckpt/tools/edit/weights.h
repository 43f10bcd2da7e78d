// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the model's weights in what a file holds: a bare state_dict, or a
// training checkpoint that keeps one under a key.
//   auto place = locate_weights(file.root);      // {"state_dict", ...}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Where the weights are.
struct WeightsPlace {
  /// Key at the top level; empty if the top level is the weights.
  std::string key = {};
  /// A dict or what holds a whole model (`module_in`), or what else the top
  /// level is. Shared with the tree.
  Value value = {};
};

/// The first of the usual keys ("state_dict", "model_state_dict", "model",
/// "net", "module", "weights", "model_state") that holds a dict or a whole
/// model; else the top level itself.
WeightsPlace locate_weights(const Value& root);

/// The same for those who change keys: only a dict will do. `key` names the
/// place instead of the usual keys; "" searches.
/// Errors: kNotFound (E_NO_KEY); kUnsupported (E_NO_WEIGHTS) for a whole model
/// or a value without keys.
Result<WeightsPlace> weights_to_edit(
    const Value& root,
    std::string_view key = {});

/// Where in the dicts of `root` there is `_metadata`, the attribute of a
/// state_dict with the versions of its modules: "_metadata" for that of the
/// root, "model._metadata".
std::vector<std::string> metadata_places(const Value& root);

/// `root` with other weights at `place`. The tree of `root` is left as it is.
Value with_weights(const Value& root, const WeightsPlace& place, Value weights);

} // namespace lockstep::ckpt
