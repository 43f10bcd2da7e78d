// SPDX-License-Identifier: BSD-3-Clause
//
// The weight gradient of convolutions whose output is one pixel.
//
// Note [Weight gradients as products]
// A kernel that is applied once meets one input pixel per tap: the tap's
// gradient is the product of the output gradients and these pixels,
// [out, batch] by [batch, in], and zero for taps that lie in the padding, of
// which there are eight of nine on 1x1 maps. oneDNN goes through the whole
// gradient once per image instead. Both add up the batch in its order, but only
// on some processors, and up to some batch size, with the same roundings:
// products are used for the shapes and numbers of threads for which a trial
// gave equal bits. Measured with one AVX-512 core, batch 128, 512 -> 512
// channels, 3x3: 24.3 -> 1.1 ms (in pieces, weight_gradient.h: 11 ms).
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/convolution_terms.h"

namespace lockstep::kernels {

/// True where products may be the faster way.
bool weight_products_fit(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& weight);

/// The gradient of `weight`, [out, in, kh, kw], from `grad_output`,
/// [batch, out, 1, 1], and `input`, [batch, in, h, w].
at::Tensor weight_products(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& weight,
    const KernelSteps& steps);

/// Computes a weight gradient from a grad_output and an input.
using WeightGradientFunction =
    std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

/// True if `weight_products` gives the bits of `libtorch_kernel` for tensors of
/// these shapes with the calling thread's number of threads: tried once, on
/// made-up values, since real ones may be zero. Threads: any; the arguments are
/// those of a convolution with one group for which `weight_products_fit`.
bool weight_products_are_exact(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& weight,
    const KernelSteps& steps,
    const WeightGradientFunction& libtorch_kernel);

} // namespace lockstep::kernels
