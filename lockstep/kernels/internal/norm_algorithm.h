// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation of tensors, with a ReLU behind it or without, as it is
// computed on one kind of device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

namespace lockstep::kernels {

/// With the type and the layout of `x`, of unspecified content.
inline at::Tensor new_like(const at::Tensor& x) {
  return at::empty_like(x, x.options(), x.suggest_memory_format());
}

/// float32 [4, C]: the rows of what backward needs of each channel.
struct ChannelParameters {
  at::Tensor rows = {};

  [[nodiscard]] at::Tensor mean() const {
    return rows.select(0, 0);
  }
  /// 1 / sqrt(variance + eps)
  [[nodiscard]] at::Tensor invstd() const {
    return rows.select(0, 1);
  }
  /// Output: x * scale + shift.
  [[nodiscard]] at::Tensor scale() const {
    return rows.select(0, 2);
  }
  [[nodiscard]] at::Tensor shift() const {
    return rows.select(0, 3);
  }
};

struct NormOutput {
  at::Tensor y = {};
  ChannelParameters parameters = {};
};

/// The layer's own tensors: float32 [C] on the device of the batch, or
/// undefined.
struct NormLayer {
  at::Tensor weight = {};
  at::Tensor bias = {};
  at::Tensor running_mean = {};
  at::Tensor running_var = {};
  double momentum = 0;
  double eps = 0;
};

/// What a backward pass begins with.
struct NormGradientInputs {
  at::Tensor grad = {};
  at::Tensor x = {};
  at::Tensor weight = {};
  /// Defined if there was an addend.
  at::Tensor output = {};
  ChannelParameters parameters = {};
  bool has_relu = false;
};

struct NormGradients {
  at::Tensor of_input = {};
  at::Tensor of_weight = {};
  at::Tensor of_bias = {};
  at::Tensor of_addend = {};
};

/// Threads: any.
class NormAlgorithm {
 public:
  NormAlgorithm() = default;
  virtual ~NormAlgorithm() = default;
  NormAlgorithm(const NormAlgorithm&) = delete;
  NormAlgorithm& operator=(const NormAlgorithm&) = delete;

  /// Whether it takes batches with the type and the layout of `x`, which has
  /// shape [N, C, ...].
  [[nodiscard]] virtual bool takes(const at::Tensor& x) const = 0;

  /// relu((x - mean) / sqrt(variance + eps) * weight + bias + addend), or
  /// without ReLU, with the batch's statistics; the running ones, if there are
  /// any, move towards them. `addend` may be undefined; else it has the layout
  /// of `x`.
  [[nodiscard]] virtual NormOutput by_batch(
      const at::Tensor& x,
      const NormLayer& layer,
      const at::Tensor& addend,
      bool has_relu) const = 0;

  /// The same with the running statistics.
  [[nodiscard]] virtual NormOutput by_running(
      const at::Tensor& x,
      const NormLayer& layer,
      const at::Tensor& addend,
      bool has_relu) const = 0;

  /// All but the input's if `wants_input` is not set. `grad` has the layout of
  /// `x`.
  [[nodiscard]] virtual NormGradients gradients(
      const NormGradientInputs& inputs,
      bool wants_input) const = 0;
};

} // namespace lockstep::kernels
