// SPDX-License-Identifier: BSD-3-Clause
//
// Which modules keep statistics of batches.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <torch/nn/modules/batchnorm.h>

#include "lockstep/tensor/state_dict.h"

namespace lockstep {

/// A module that stands for a batch norm and is none of LibTorch's, as in an
/// exported program.
class BatchNormPart {
 public:
  virtual ~BatchNormPart() = default;
  /// Its forward pass calls aten::batch_norm, with its own statistics.
  [[nodiscard]] virtual bool calls_batch_norm() const = 0;

 protected:
  BatchNormPart() = default;
  BatchNormPart(const BatchNormPart&) = default;
  BatchNormPart(BatchNormPart&&) = default;
  BatchNormPart& operator=(const BatchNormPart&) = default;
  BatchNormPart& operator=(BatchNormPart&&) = default;
};

/// LibTorch's batch norms, classes made of them, modules that are called so in
/// Python, and parts of an exported program that call a batch norm: those of
/// classes made of Python's.
inline bool is_batch_norm(const torch::nn::Module& module) {
  constexpr std::array<std::string_view, 4> kClasses{
      "BatchNorm1d",
      "BatchNorm2d",
      "BatchNorm3d",
      "SyncBatchNorm"};
  const auto* const part = dynamic_cast<const BatchNormPart*>(&module);
  return (part != nullptr && part->calls_batch_norm()) ||
         module.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr ||
         std::ranges::find(kClasses, class_name(module)) != kClasses.end();
}

} // namespace lockstep
