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

/// Adds both operations.
void add_convolutions(torch::Library& library);

/// Whether they take ways that give other bits than LibTorch's, from now on.
/// Threads: any.
void use_products(bool are_used);

} // namespace lockstep::kernels
