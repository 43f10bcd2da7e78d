// SPDX-License-Identifier: BSD-3-Clause
//
// Winograd convolutions, F(4x4, 3x3): 3x3, stride 1, over larger maps. 36
// multiplications for 4x4 outputs, where a direct convolution has 144. What is
// multiplied is told in Note [Winograd's transforms] in winograd_loops.h.
//
// Note [Tiles in a cache]
// The spectrum of a map is 2.25 times as large as the map: written to memory
// and read again it would cost what the multiplications save. Tiles are
// transformed, multiplied and transformed back some at a time, while they are
// in a cache. The gradient of the weight is one sum over all tiles: each thread
// computes some rows and columns of it.
//
// Sums have one order whatever the number of threads. Rounding errors are at
// most twice those of LibTorch's kernels for channels last, which is why only
// those are replaced: with packed maps LibTorch's errors are half as large. An
// Inf or NaN reaches all outputs of the tiles that see it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/convolution_algorithm.h"
#include "lockstep/kernels/internal/convolution_terms.h"
#include "lockstep/kernels/internal/winograd_loops.h"

namespace lockstep::kernels {

/// A two-dimensional convolution with one group, computed by Winograd's
/// algorithm.
class WinogradConvolution final : public ConvolutionAlgorithm {
 public:
  /// None for others than 3x3 with stride 1, no dilation and a padding of at
  /// most 2, float32, channels last, numbers of channels that are multiples of
  /// kChannelStep.
  /// Shape: `input` [batch, in, h, w], `weight` [out, in, 3, 3].
  static std::optional<WinogradConvolution> of(
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
  WinogradConvolution(
      const at::Tensor& input,
      const at::Tensor& weight,
      at::IntArrayRef padding);

  [[nodiscard]] std::int64_t tiles() const {
    return batch() * outputs_.tiles_down * outputs_.tiles_across;
  }

  [[nodiscard]] std::array<std::int64_t, 4> output_sizes() const override;

  // Tile by tile.
  TiledMap pixels_;
  TiledMap outputs_;
};

} // namespace lockstep::kernels
