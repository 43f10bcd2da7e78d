// SPDX-License-Identifier: BSD-3-Clause
//
// Convolutions over small maps as matrix products of LibTorch's own.
//
// Note [Convolutions as products]
// A convolution library takes an image at a time, and on a map of one or a few
// pixels the weights stream through the caches once per image. A matrix product
// takes the batch at a time. With channels last, neighbouring pixels of an
// image are neighbours in memory, and so are neighbouring taps of a weight:
// what a run of taps adds to an output pixel is one product,
//   output[:, pixel] += input[:, pixels] x weight[:, taps]^T
//   [batch, out]        [batch, n * in]    [n * in, out]
// whose operands are parts of the tensors in place; pixels are never gathered.
// The gradients are the same products the other way round. On a map of 1x1
// this is one product with the middle tap; on 2x2 it is two for each output.
// Taps over padding take no part, so that an Inf or NaN reaches the outputs
// that see it and no others, as with LibTorch's kernels.
//
// Sums are taken in another order than LibTorch's: the last bits differ, and
// are the same from run to run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/convolution_terms.h"

namespace lockstep::kernels {

/// What is computed of a convolution.
enum class Pass { kForward, kInputGradient, kWeightGradient };

/// A two-dimensional convolution with one group, as products.
class ConvolutionProducts {
 public:
  /// None for what has no such products: other dimensions or types than
  /// float32 and bfloat16, empty tensors, maps of more than 16 outputs.
  /// Shape: `input` [batch, in, h, w], `weight` [out, in, kh, kw].
  static std::optional<ConvolutionProducts> of(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps);

  /// Whether this is the faster way, and as exact: a matter of shape and type
  /// alone, never of a measurement, so that runs repeat. docs/performance.md
  /// has the numbers.
  [[nodiscard]] bool are_better(Pass pass) const;

  /// Whether no sum is rounded more often than in LibTorch's kernels.
  [[nodiscard]] bool are_as_exact(Pass pass) const;

  /// Whether they are as a convolution's are: LibTorch refuses others.
  [[nodiscard]] bool take_bias(const at::Tensor& bias) const;
  [[nodiscard]] bool take_gradient(const at::Tensor& grad_output) const;

  /// All have the strides that LibTorch's kernels give them.
  /// Shape: `bias` [out], or undefined; `grad_output` [batch, out, oh, ow].
  [[nodiscard]] at::Tensor forward(const at::Tensor& bias) const;
  [[nodiscard]] at::Tensor input_gradient(const at::Tensor& grad_output) const;
  [[nodiscard]] at::Tensor weight_gradient(const at::Tensor& grad_output) const;

 private:
  ConvolutionProducts(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps);

  [[nodiscard]] std::int64_t in() const {
    return weight_.size(1);
  }
  [[nodiscard]] std::int64_t out() const {
    return weight_.size(0);
  }
  [[nodiscard]] std::array<std::int64_t, 4> output_sizes() const;
  [[nodiscard]] at::Tensor sums_for(at::IntArrayRef sizes) const;
  [[nodiscard]] at::Tensor live_part(const at::Tensor& weight) const;
  [[nodiscard]] at::Tensor in_layout(const at::Tensor& map) const;

  at::Tensor input_;
  at::Tensor weight_;
  at::MemoryFormat layout_;
  TapLine down_;
  TapLine across_;
  // Neither faster nor as exact beyond doubt.
  bool is_dilated_;
  std::vector<Term> terms_ = {};
};

} // namespace lockstep::kernels
