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

struct ConvolutionAlgorithmRow {
  /// As profilers see it.
  const char* name = nullptr;
  /// Null for a convolution that the way cannot compute.
  std::unique_ptr<const ConvolutionAlgorithm> (*of)(
      const at::Tensor& input,
      const at::Tensor& weight,
      const KernelSteps& steps) = nullptr;
};

template <class Algorithm>
std::unique_ptr<const ConvolutionAlgorithm> made_algorithm(
    const at::Tensor& input,
    const at::Tensor& weight,
    const KernelSteps& steps) {
  const auto algorithm = Algorithm::of(input, weight, steps);
  return algorithm ? std::make_unique<const Algorithm>(*algorithm) : nullptr;
}

/// The first that is better computes; LibTorch's kernel if none is.
inline constexpr std::array kConvolutionAlgorithms{
    ConvolutionAlgorithmRow{
        "lockstep::winograd",
        &made_algorithm<WinogradConvolution>},
    ConvolutionAlgorithmRow{
        "lockstep::direct",
        &made_algorithm<DirectConvolution>},
    ConvolutionAlgorithmRow{
        "lockstep::product",
        &made_algorithm<ConvolutionProducts>}};

} // namespace lockstep::kernels
