// SPDX-License-Identifier: BSD-3-Clause
//
// The weight gradient of convolutions over small maps. An output of one pixel
// has a shorter way (weight_products.h); the others are computed in pieces by
// replicas that have one thread each.
//
// Note [Weight gradients in pieces]
// oneDNN adds each image's part to the whole weight gradient: on a map of 2x2
// or less that is little arithmetic per pass over all of it, and a gradient
// that does not fit the L2 cache streams through once per image. One process
// with many threads gives each thread a part of the channels, which fits; a
// replica with one thread does not. Computing the output channels piece by
// piece does the same additions in the same order, so that every bit is equal.
// Not so with narrower vectors (measured with AVX2): there are no pieces then.
// Measured with one AVX-512 core (2 MiB of L2), batch 128, 3x3: 512 -> 512
// channels on 1x1 maps 25.4 -> 11.1 ms, 256 -> 256 on 2x2 maps 9.5 -> 7.5 ms.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/convolution_terms.h"

namespace lockstep::kernels {

/// How many pieces the gradient of `weight`, [out, in, kh, kw], is computed in
/// by the calling thread, given `grad_output`, [batch, out, oh, ow]: 1 where
/// LibTorch's own way is as fast or its bits could differ.
std::int64_t weight_gradient_pieces(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& weight);

/// What the gradients of a convolution with one group are computed from.
struct ConvolutionInputs {
  const at::Tensor& grad_output;
  const at::Tensor& input;
  const at::Tensor& weight;
  KernelSteps steps;
};

/// Of the input, the weight and the bias; undefined if not wanted.
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// The wanted ones from a grad_output, an input and a weight.
using GradientsFunction = std::function<Gradients(
    const at::Tensor&,
    const at::Tensor&,
    const at::Tensor&,
    std::array<bool, 3>)>;

/// Sets to zero the taps of a weight's gradient whose every pixel is padding:
/// LibTorch 2.13 leaves them as the memory was if it computes in bfloat16 with
/// a stride, which is often Inf or NaN. Shape: `gradient` [out, in, taps...],
/// `input` [batch, channels, pixels...]; nothing happens to an undefined one.
void clear_dead_taps(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const KernelSteps& steps);

/// The gradients with the bits of `libtorch_kernel`, but sooner.
Gradients same_bits_gradients(
    const ConvolutionInputs& of,
    std::array<bool, 3> wanted,
    const GradientsFunction& libtorch_kernel);

} // namespace lockstep::kernels
