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
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions)
class BatchNormPart {
 public:
  virtual ~BatchNormPart() = default;
  /// Its forward pass calls aten::batch_norm, with its own statistics.
  [[nodiscard]] virtual bool calls_batch_norm() const = 0;

 protected:
  BatchNormPart() = default;
  BatchNormPart(const BatchNormPart&) = default;
  BatchNormPart& operator=(const BatchNormPart&) = default;
};

/// LibTorch's batch norms, classes made of them, and modules that are called so
/// in Python: those of an exported program.
inline bool is_batch_norm(const torch::nn::Module& module) {
  constexpr std::array<std::string_view, 4> kClasses{
      "BatchNorm1d",
      "BatchNorm2d",
      "BatchNorm3d",
      "SyncBatchNorm"};
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr ||
         std::ranges::find(kClasses, class_name(module)) != kClasses.end();
}

} // namespace lockstep
