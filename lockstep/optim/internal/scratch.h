// SPDX-License-Identifier: BSD-3-Clause
//
// Memory for one temporary the size of a parameter, reused from step to step.
// Fresh memory of several MiB costs page faults at each use.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::internal {

/// Hands out one temporary at a time.
class Scratch {
 public:
  /// An uninitialised tensor laid out like `like`; valid until the next call.
  at::Tensor get(const at::Tensor& like);

 private:
  /// One flat buffer for each dtype and device.
  std::vector<at::Tensor> buffers_;
};

/// A gradient on its way to the update: the parameter's own until the first
/// change, then a temporary.
class WorkingGrad {
 public:
  WorkingGrad(at::Tensor grad, Scratch& scratch)
      : grad_(std::move(grad)), scratch_(scratch) {}

  /// grad = -grad
  void negate();
  /// grad = grad + alpha * other
  void add(const at::Tensor& other, double alpha);
  [[nodiscard]] const at::Tensor& get() const noexcept {
    return grad_;
  }

 private:
  at::Tensor grad_;
  Scratch& scratch_;
  bool is_temporary_ = false;
};

} // namespace lockstep::internal
