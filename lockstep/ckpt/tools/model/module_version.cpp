// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/model/module_version.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::ckpt {
namespace {

struct Version {
  std::string_view class_name = {};
  std::int64_t version = 1;
};

// Asked of torch 2.13: all others are 1, but for quantized modules, whose
// state_dict is not made of parameters and buffers.
constexpr std::array kVersions{
    Version{"torch.nn.modules.batchnorm.BatchNorm1d", 2},
    Version{"torch.nn.modules.batchnorm.BatchNorm2d", 2},
    Version{"torch.nn.modules.batchnorm.BatchNorm3d", 2},
    Version{"torch.nn.modules.batchnorm.LazyBatchNorm1d", 2},
    Version{"torch.nn.modules.batchnorm.LazyBatchNorm2d", 2},
    Version{"torch.nn.modules.batchnorm.LazyBatchNorm3d", 2},
    Version{"torch.nn.modules.batchnorm.SyncBatchNorm", 2},
    Version{"torch.nn.modules.instancenorm.InstanceNorm1d", 2},
    Version{"torch.nn.modules.instancenorm.InstanceNorm2d", 2},
    Version{"torch.nn.modules.instancenorm.InstanceNorm3d", 2},
    Version{"torch.nn.modules.instancenorm.LazyInstanceNorm1d", 2},
    Version{"torch.nn.modules.instancenorm.LazyInstanceNorm2d", 2},
    Version{"torch.nn.modules.instancenorm.LazyInstanceNorm3d", 2}};

} // namespace

std::int64_t module_version(const Value& module) {
  const Object* object = module.as_object();
  const auto* row =
      object == nullptr
          ? kVersions.end()
          : std::ranges::find(kVersions, object->global, &Version::class_name);
  if (row == kVersions.end() || object->state == nullptr) {
    return 1;
  }
  // Version 2 of the norms means: `num_batches_tracked` is there, None if the
  // layer keeps no statistics.
  const Value* buffers = object->state->find("_buffers");
  const bool is_old =
      buffers != nullptr && buffers->find("num_batches_tracked") == nullptr;
  return is_old ? 1 : row->version;
}

} // namespace lockstep::ckpt
