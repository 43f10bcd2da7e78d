// SPDX-License-Identifier: BSD-3-Clause
//
// Convolutions over small maps as matrix products of LibTorch's own.
//
// Note [Convolutions as products]
// A convolution library takes an image at a time, and on a map of one or a few
// pixels the weights stream through the caches once per image. A matrix product
// takes the batch at a time. All outputs that see the same pixels are one:
//   output[:, outputs] = input[:, pixels] x weight[taps]^T
//   [batch, outputs * out]  [batch, pixels * in]
// and so are all pixels that the same outputs see, the other way round. On maps
// of 1x1 and 2x2, and where one output is left, each output sees each pixel:
// the whole convolution is one product of the activations as they lie in
// memory, whichever layout they have, with a weight that is laid out to fit
// (packed_weight.h). That costs one copy of the weight per call, which is
// little beside the product of a batch; keeping it between calls would mean to
// know of every write to the weight, also by code that LibTorch's counters do
// not see. The gradient of the weight is one product for each tap, over the
// batch of all outputs that use it. Taps over padding take no part, so that an
// Inf or NaN reaches the outputs that see it and no others, as with LibTorch's
// kernels.
//
// Sums are taken in another order than LibTorch's: the last bits differ, and
// are the same from run to run. No sum of bfloat16 is rounded in between.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/convolution_algorithm.h"
#include "lockstep/kernels/internal/convolution_terms.h"

namespace lockstep::kernels {

/// A two-dimensional convolution with one group, as products.
class ConvolutionProducts final : public ConvolutionAlgorithm {
 public:
  /// None for what has no such products: other dimensions or types than
  /// float32 and bfloat16, empty tensors, maps of more than 16 outputs or 64
  /// pixels.
  /// Shape: `input` [batch, in, h, w], `weight` [out, in, kh, kw].
  static std::optional<ConvolutionProducts> of(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps);

  [[nodiscard]] bool is_better(Pass pass) const override;
  [[nodiscard]] at::Tensor forward(const at::Tensor& bias) const override;
  [[nodiscard]] at::Tensor input_gradient(
      const at::Tensor& grad_output) const override;
  [[nodiscard]] at::Tensor weight_gradient(
      const at::Tensor& grad_output) const override;

 private:
  ConvolutionProducts(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps);

  [[nodiscard]] std::int64_t outputs() const {
    return down_.outputs * across_.outputs;
  }
  [[nodiscard]] std::int64_t pixels() const {
    return down_.pixels * across_.pixels;
  }
  [[nodiscard]] std::array<std::int64_t, 4> output_sizes() const override;

  at::MemoryFormat layout_;
  TapLine down_;
  TapLine across_;
  // Not faster beyond doubt.
  bool is_dilated_;
};

} // namespace lockstep::kernels
