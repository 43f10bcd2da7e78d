// SPDX-License-Identifier: BSD-3-Clause
//
// What our algorithms for a convolution have in common. Which there are:
// convolution_algorithms.h.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/convolution_terms.h"

namespace lockstep::kernels {

/// One two-dimensional convolution with one group, computed in one way.
/// Shape: input [batch, in, h, w], weight [out, in, kh, kw].
class ConvolutionAlgorithm {
 public:
  virtual ~ConvolutionAlgorithm() = default;

  /// Whether this is faster than LibTorch's kernel, and as exact: a matter of
  /// shape, type, processor, LibTorch's precision of float32 and the calling
  /// thread's number of threads, never of a measurement, so that runs repeat.
  /// docs/performance.md has the numbers.
  [[nodiscard]] virtual bool is_better(Pass pass) const = 0;

  /// Whether it is that of an output: LibTorch refuses others.
  [[nodiscard]] bool takes_gradient(const at::Tensor& grad_output) const;

  /// All have the strides that LibTorch's kernels give them.
  /// Shape: `bias` [out], or undefined; `grad_output` [batch, out, oh, ow].
  [[nodiscard]] virtual at::Tensor forward(const at::Tensor& bias) const = 0;
  [[nodiscard]] virtual at::Tensor input_gradient(
      const at::Tensor& grad_output) const = 0;
  [[nodiscard]] virtual at::Tensor weight_gradient(
      const at::Tensor& grad_output) const = 0;

 protected:
  ConvolutionAlgorithm(at::Tensor input, at::Tensor weight)
      : input_(std::move(input)), weight_(std::move(weight)) {}

  [[nodiscard]] virtual std::array<std::int64_t, 4> output_sizes() const = 0;

  [[nodiscard]] const at::Tensor& input() const {
    return input_;
  }
  [[nodiscard]] const at::Tensor& weight() const {
    return weight_;
  }
  [[nodiscard]] std::int64_t batch() const {
    return input_.size(0);
  }
  [[nodiscard]] std::int64_t in() const {
    return weight_.size(1);
  }
  [[nodiscard]] std::int64_t out() const {
    return weight_.size(0);
  }

 private:
  at::Tensor input_;
  at::Tensor weight_;
};

} // namespace lockstep::kernels
