// SPDX-License-Identifier: BSD-3-Clause
//
// The table of our algorithms for a convolution.
#pragma once

#include <array>
#include <memory>

#include "lockstep/kernels/internal/convolution_products.h"
#include "lockstep/kernels/internal/direct_convolution.h"
#include "lockstep/kernels/internal/winograd.h"

namespace lockstep::kernels {

struct ConvolutionWayRow {
  /// As profilers see it.
  const char* name = nullptr;
  /// Null for a convolution that the way cannot compute.
  std::unique_ptr<const ConvolutionAlgorithm> (*of)(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps) = nullptr;
};

template <class Way>
std::unique_ptr<const ConvolutionAlgorithm> made_way(
    const at::Tensor& input,
    const at::Tensor& weight,
    const KernelSteps& steps) {
  const auto way = Way::of(input, weight, steps);
  return way ? std::make_unique<const Way>(*way) : nullptr;
}

/// The first that is better computes; LibTorch's kernel if none is.
inline constexpr std::array kConvolutionAlgorithms{
    ConvolutionWayRow{"lockstep::winograd", &made_way<WinogradConvolution>},
    ConvolutionWayRow{"lockstep::direct", &made_way<DirectConvolution>},
    ConvolutionWayRow{"lockstep::product", &made_way<ConvolutionProducts>}};

} // namespace lockstep::kernels
