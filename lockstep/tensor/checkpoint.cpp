// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/checkpoint.h"

#include <c10/util/Exception.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/bridge.h"
#include "lockstep/tensor/compat.h"

namespace lockstep {
namespace {

struct Convert {
  ValueBuilder& builder;

  ckpt::Value operator()(const ckpt::Value& value) const {
    return value;
  }
  ckpt::Value operator()(const StateDict& weights) const {
    return builder.state_dict(weights);
  }
  ckpt::Value operator()(const at::Tensor& tensor) const {
    return builder.tensor(tensor);
  }
};

} // namespace

Checkpoint
load(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  check_torch_version();
  ckpt::Checkpoint file = ckpt::load(
                              path,
                              {.use_mmap = options.use_mmap,
                               .check_crc = options.check_crc,
                               .byteorder = options.byteorder},
                              fs)
                              .value();
  for (const ckpt::Warning& warning : file.warnings) {
    TORCH_WARN(escape(path), ": ", to_string(warning));
  }
  map_locations(file.root, options.map_location);
  return {std::move(file.root), path};
}

ckpt::Value checkpoint(
    std::initializer_list<std::pair<std::string, CheckpointEntry>> entries) {
  ValueBuilder builder;
  ckpt::Dict dict;
  for (const auto& [key, entry] : entries) {
    dict.items.emplace_back(key, std::visit(Convert{builder}, entry.data()));
  }
  return dict;
}

void save(
    const CheckpointEntry& content,
    const std::string& path,
    FileSystem& fs) {
  check_torch_version();
  ValueBuilder builder;
  ckpt::save(path, std::visit(Convert{builder}, content.data()), {}, fs)
      .value();
}

} // namespace lockstep
