// SPDX-License-Identifier: BSD-3-Clause
//
// One convolution, computed by LibTorch and in one of our ways.
#pragma once

#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "lockstep/kernels/internal/convolution_terms.h"

namespace lockstep::kernels {

/// Output, gradient of the input, gradient of the weight: as in Pass.
using ConvolutionResults = std::array<at::Tensor, 3>;

struct ConvolutionCase {
  at::Tensor input = {};
  at::Tensor weight = {};
  at::Tensor bias = {};
  at::Tensor grad_output = {};
  std::vector<std::int64_t> strides{1, 1};
  std::vector<std::int64_t> paddings{1, 1};
  std::vector<std::int64_t> dilations{1, 1};

  [[nodiscard]] KernelSteps steps() const {
    return {.stride = strides, .padding = paddings, .dilation = dilations};
  }

  /// The same convolution of other numbers.
  [[nodiscard]] ConvolutionCase to(at::ScalarType type) const {
    ConvolutionCase other = *this;
    for (at::Tensor* tensor :
         {&other.input, &other.weight, &other.bias, &other.grad_output}) {
      if (tensor->defined()) {
        *tensor = tensor->to(type);
      }
    }
    return other;
  }

  /// LibTorch's results with tensors of `type`.
  [[nodiscard]] ConvolutionResults libtorchs(at::ScalarType type) const {
    const auto x = input.to(type).detach().requires_grad_();
    const auto w = weight.to(type).detach().requires_grad_();
    const auto y = at::conv2d(
        x,
        w,
        bias.defined() ? bias.to(type) : bias,
        strides,
        paddings,
        dilations);
    const auto grads =
        torch::autograd::grad({y}, {x, w}, {grad_output.to(type)});
    return {y.detach(), grads[0], grads[1]};
  }

  /// Those of a way that takes it.
  template <class Algorithm>
  [[nodiscard]] ConvolutionResults computed_by() const {
    const Algorithm algorithm = Algorithm::of(input, weight, steps()).value();
    return {
        algorithm.forward(bias),
        algorithm.input_gradient(grad_output),
        algorithm.weight_gradient(grad_output)};
  }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << input.scalar_type() << " " << input.sizes() << " * "
        << weight.sizes() << ", stride " << strides << ", padding " << paddings
        << ", dilation " << dilations;
    return out.str();
  }
};

inline double rms(const at::Tensor& exact) {
  return exact.square().mean().sqrt().item<double>();
}

/// Root of the mean square: a single largest error would be luck.
inline double rms_error(const at::Tensor& result, const at::Tensor& exact) {
  return rms(result.to(at::kDouble) - exact);
}

/// What a single rounding, or some of float32, may cost.
inline double tolerance(const at::Tensor& result) {
  return result.scalar_type() == at::kBFloat16 ? 3e-3 : 2e-6;
}

} // namespace lockstep::kernels
