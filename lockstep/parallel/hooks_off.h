// SPDX-License-Identifier: BSD-3-Clause
//
// Keeps the hooks of tensors from being called. Hooks on the master's
// parameters must see the sum over replicas, once; replica 0 computes with
// these very tensors, so its own pass must not call them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function_hook.h>

#include "lockstep/parallel/scatter_gather.h"

namespace lockstep::parallel {

/// Takes the hooks off while it lives.
/// Threads: no other thread may use or change these hooks meanwhile.
class HooksOff {
 public:
  explicit HooksOff(const TensorList& tensors);
  ~HooksOff();
  HooksOff(const HooksOff&) = delete;
  HooksOff& operator=(const HooksOff&) = delete;

 private:
  using Hooks = std::vector<std::unique_ptr<torch::autograd::FunctionPreHook>>;
  std::vector<std::pair<at::Tensor, Hooks>> saved_;
};

} // namespace lockstep::parallel
