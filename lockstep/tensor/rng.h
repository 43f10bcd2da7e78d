// SPDX-License-Identifier: BSD-3-Clause
//
// State of the default CPU generator, interchangeable with Python's
// `torch.get_rng_state()`.
#pragma once

#include <ATen/core/Tensor.h>

#pragma GCC visibility push(default)
namespace lockstep {

/// Shape: [5056] uint8, a copy.
at::Tensor get_rng_state();

/// Errors: throws kInvalidArgument for another shape or dtype.
void set_rng_state(const at::Tensor& state);

/// Puts the default CPU generator back at the end of a scope.
/// Threads: no other thread may draw from it meanwhile.
class RngStateGuard {
 public:
  RngStateGuard() : state_(get_rng_state()) {}
  ~RngStateGuard() {
    set_rng_state(state_);
  }
  RngStateGuard(const RngStateGuard&) = delete;
  RngStateGuard& operator=(const RngStateGuard&) = delete;

 private:
  at::Tensor state_;
};

} // namespace lockstep
#pragma GCC visibility pop
