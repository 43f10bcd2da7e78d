// SPDX-License-Identifier: BSD-3-Clause
//
// BatchNorm whose statistics are those of several ranks, as an operation.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "lockstep/distributed/process_group.h"

namespace lockstep::dist::internal {

/// The arguments of aten::batch_norm that matter in training.
struct NormInputs {
  at::Tensor input = {};
  std::optional<at::Tensor> weight = {};
  std::optional<at::Tensor> bias = {};
  std::optional<at::Tensor> running_mean = {};
  std::optional<at::Tensor> running_var = {};
  double momentum = 0;
  double eps = 0;
};

/// Training's forward pass, with a graph; changes the running statistics.
/// A collective, and so is its backward pass.
at::Tensor sync_batch_norm(const ProcessGroup& group, const NormInputs& inputs);

} // namespace lockstep::dist::internal
