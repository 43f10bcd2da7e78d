// SPDX-License-Identifier: BSD-3-Clause
//
// Convolutions over small maps with loops of our own.
//
// Note [Direct convolutions]
// With channels last, the channels of one pixel of all images are a matrix
// whose rows lie one image apart. Each output is a sum of products:
//   output[:, q] = sum over the pixels p that q sees
//                  input[:, p] x weight[tap of q and p]^T
//   [batch, out]   [batch, in]   [in, out]
// and so are the gradients of pixels, and with the batch as the inner dimension
// those of taps. Nothing is laid out anew for that but each tap of the weight,
// once per call, and some images at a time, so that they lie in a cache without
// gaps; taps over padding take no part. A product library would want to have
// whole operands copied, and add up one product per call. LibTorch's kernels
// take an image at a time, and multiply what is outside of the map.
//
// Sums are taken in blocks of float32 (product_loops.h), which keeps their
// errors small. No sum of bfloat16 is rounded in between.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/convolution_algorithm.h"
#include "lockstep/kernels/internal/convolution_terms.h"
#include "lockstep/kernels/internal/direct_loops.h"

namespace lockstep::kernels {

/// A two-dimensional convolution with one group, channels last.
class DirectConvolution final : public ConvolutionAlgorithm {
 public:
  /// None for what has no such loops: other dimensions or layouts, types other
  /// than float32 and, where the processor multiplies it, bfloat16, numbers of
  /// channels that are no multiple of kChannelStep, empty tensors, maps of more
  /// than 64 pixels or outputs. Shape: `input` [batch, in, h, w], `weight`
  /// [out, in, kh, kw].
  static std::optional<DirectConvolution> of(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps);

  [[nodiscard]] bool is_better(Pass pass) const override;
  // The same bits with any number of threads.
  [[nodiscard]] at::Tensor forward(const at::Tensor& bias) const override;
  [[nodiscard]] at::Tensor input_gradient(
      const at::Tensor& grad_output) const override;
  [[nodiscard]] at::Tensor weight_gradient(
      const at::Tensor& grad_output) const override;

 private:
  DirectConvolution(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps);

  [[nodiscard]] bool is_half() const {
    return weight().scalar_type() == at::kBFloat16;
  }
  [[nodiscard]] std::array<std::int64_t, 4> output_sizes() const override;
  [[nodiscard]] at::Tensor sums_of(
      const at::Tensor& map,
      const Terms& terms,
      const at::Tensor& bias,
      bool is_forward,
      at::IntArrayRef sizes) const;

  TapLine down_;
  TapLine across_;
  bool is_strided_;
};

} // namespace lockstep::kernels
