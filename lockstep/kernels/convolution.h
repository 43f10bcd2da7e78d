// SPDX-License-Identifier: BSD-3-Clause
//
// What takes the place of LibTorch's convolutions on the CPU, and what they
// hand on to. Who asks for it: install.h.
//
// Note [Convolutions below autograd]
// aten::convolution and aten::convolution_backward have formulas for their
// gradients, but of kernels for the CPU only composite ones, to which one that
// is registered for the CPU is preferred. Autograd's kernel saves what it needs
// and calls the operation once more below itself: there ours is met, by every
// conv2d and its gradient, with autocast's types, in inference mode as well.
// A gradient of a gradient is made of convolutions and arrives here, too.
#pragma once

#include <torch/library.h>

namespace lockstep::kernels {

/// Whose convolutions a process computes on the CPU.
enum class Convolutions { kTorch, kSameBits, kProducts };

/// Adds both operations.
void add_convolutions(torch::Library& library);

/// Which kernels they are from now on. Threads: any.
void use_convolutions(Convolutions convolutions);

} // namespace lockstep::kernels
