// SPDX-License-Identifier: BSD-3-Clause
//
// Faster CPU kernels, for programs that ask for them:
//   lockstep::kernels::install();
// Replaced is `aten::convolution_backward` on the CPU: the gradients of
// weights over small maps (weight_products.h, weight_gradient.h), float32 in
// the usual layout. All other gradients are LibTorch's own calls, one function
// call later. Nothing in Lockstep installs it but `lockstep train`, which has
// `--kernels torch` against it.
#pragma once

namespace lockstep::kernels {

/// Makes LibTorch use Lockstep's CPU kernels in the whole process and until it
/// ends: in every thread and for every module, Lockstep's or not. Results keep
/// every bit; only the time differs. Further calls do nothing.
/// Threads: any, while no other thread runs a backward pass.
void install();

} // namespace lockstep::kernels
