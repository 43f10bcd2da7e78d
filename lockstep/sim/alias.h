// SPDX-License-Identifier: BSD-3-Clause
//
// How every operation runs: the arguments become CPU tensors over the same
// bytes, LibTorch's CPU kernel runs on them, and its results become tensors of
// the device. No bytes are copied, and the values are the CPU's, bit for bit.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

namespace c10 {
class OperatorHandle;
} // namespace c10

namespace lockstep::sim {

/// The kernel of all operations that have none of their own here.
/// Errors: throws c10::Error with LibTorch's text if tensors are on different
/// devices; what the CPU kernel throws; what `begin_operation` throws.
void alias_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// A CPU tensor over the bytes of `tensor`, valid while `tensor` is held.
at::Tensor cpu_alias(const at::Tensor& tensor);

/// Keeps autograd and autocast out of what runs on aliases: both have happened.
class KernelsOnly {
 public:
  KernelsOnly();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

} // namespace lockstep::sim
