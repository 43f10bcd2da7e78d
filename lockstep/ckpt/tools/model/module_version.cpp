// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/model/module_version.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::ckpt {
namespace {

struct Version {
  // Behind the package.
  std::string_view class_name = {};
  std::int64_t version = 1;
  // Version 2 of the norms means: `num_batches_tracked` is there, None if the
  // layer keeps no statistics.
  bool is_norm = false;
};

// Packages of PyTorch's layers, longest name first. Those of quantized ones
// moved with torch 1.13.
constexpr std::array<std::string_view, 5> kPackages{
    "torch.ao.quantization.",
    "torch.nn.modules.",
    "torch.quantization.",
    "torch.ao.nn.",
    "torch.nn."};

// Asked of torch 2.13: all others are 1.
constexpr std::array kVersions{
    Version{"batchnorm.BatchNorm1d", 2, true},
    Version{"batchnorm.BatchNorm2d", 2, true},
    Version{"batchnorm.BatchNorm3d", 2, true},
    Version{"batchnorm.LazyBatchNorm1d", 2, true},
    Version{"batchnorm.LazyBatchNorm2d", 2, true},
    Version{"batchnorm.LazyBatchNorm3d", 2, true},
    Version{"batchnorm.SyncBatchNorm", 2, true},
    Version{"instancenorm.InstanceNorm1d", 2, true},
    Version{"instancenorm.InstanceNorm2d", 2, true},
    Version{"instancenorm.InstanceNorm3d", 2, true},
    Version{"instancenorm.LazyInstanceNorm1d", 2, true},
    Version{"instancenorm.LazyInstanceNorm2d", 2, true},
    Version{"instancenorm.LazyInstanceNorm3d", 2, true},
    Version{"quantized.modules.batchnorm.BatchNorm2d", 2, true},
    Version{"quantized.modules.batchnorm.BatchNorm3d", 2, true},
    Version{"quantized.modules.normalization.InstanceNorm1d", 2, true},
    Version{"quantized.modules.normalization.InstanceNorm2d", 2, true},
    Version{"quantized.modules.normalization.InstanceNorm3d", 2, true},
    Version{"intrinsic.quantized.modules.bn_relu.BNReLU2d", 2, true},
    Version{"intrinsic.quantized.modules.bn_relu.BNReLU3d", 2, true},
    Version{"intrinsic.qat.modules.conv_fused.ConvBn1d", 2},
    Version{"intrinsic.qat.modules.conv_fused.ConvBn2d", 2},
    Version{"intrinsic.qat.modules.conv_fused.ConvBn3d", 2},
    Version{"intrinsic.qat.modules.conv_fused.ConvBnReLU1d", 2},
    Version{"intrinsic.qat.modules.conv_fused.ConvBnReLU2d", 2},
    Version{"intrinsic.qat.modules.conv_fused.ConvBnReLU3d", 2},
    Version{"intrinsic.quantized.modules.linear_relu.LinearReLU", 3},
    Version{"intrinsic.quantized.modules.linear_relu.LinearLeakyReLU", 3},
    Version{"intrinsic.quantized.modules.linear_relu.LinearTanh", 3},
    Version{"intrinsic.quantized.dynamic.modules.linear_relu.LinearReLU", 4},
    Version{"quantized.modules.linear.Linear", 3},
    Version{"quantized.modules.linear.LinearPackedParams", 3},
    Version{"quantized.dynamic.modules.linear.Linear", 4},
    Version{"quantized.dynamic.modules.rnn.GRU", 2},
    Version{"quantized.dynamic.modules.rnn.LSTM", 2},
    Version{"observer.HistogramObserver", 3},
    Version{"observer.MinMaxObserver", 3},
    Version{"observer.MovingAverageMinMaxObserver", 3},
    Version{"observer.MovingAveragePerChannelMinMaxObserver", 3},
    Version{"observer.PerChannelMinMaxObserver", 3}};

// Null for version 1.
const Version* version_row(std::string_view class_name) {
  for (const std::string_view package : kPackages) {
    if (class_name.starts_with(package)) {
      class_name.remove_prefix(package.size());
      const auto* row =
          std::ranges::find(kVersions, class_name, &Version::class_name);
      return row == kVersions.end() ? nullptr : row;
    }
  }
  return nullptr;
}

} // namespace

std::int64_t module_version(const Value& module) {
  const Object* object = module.as_object();
  const Version* row =
      object == nullptr ? nullptr : version_row(object->global);
  if (row == nullptr || object->state == nullptr) {
    return 1;
  }
  const Value* buffers = object->state->find("_buffers");
  const bool is_old = row->is_norm && buffers != nullptr &&
                      buffers->find("num_batches_tracked") == nullptr;
  return is_old ? 1 : row->version;
}

} // namespace lockstep::ckpt
