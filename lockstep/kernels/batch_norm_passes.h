// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation of tensors, with a ReLU behind it or without: which loops
// run over which tensors (norm_loops.h) and what becomes of their sums.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/norm_tiles.h"

namespace lockstep::kernels {

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

/// The layer's own tensors: float32 [C], or undefined.
struct NormLayer {
  at::Tensor weight = {};
  at::Tensor bias = {};
  at::Tensor running_mean = {};
  at::Tensor running_var = {};
  double momentum = 0;
  double eps = 0;
};

/// Of the batch; the running statistics, if there are any, move towards it.
ChannelParameters
batch_parameters(const at::Tensor& x, const NormTiles& tiles, NormLayer& layer);

/// Of the running statistics.
ChannelParameters running_parameters(const NormLayer& layer);

/// relu(x * scale + shift + addend), or without ReLU. `addend` may be
/// undefined.
at::Tensor normalised(
    const at::Tensor& x,
    const NormTiles& tiles,
    const ChannelParameters& parameters,
    const at::Tensor& addend,
    bool has_relu);

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

/// All but the input's if `wants_input` is not set.
NormGradients norm_gradients(
    const NormGradientInputs& inputs,
    const NormTiles& tiles,
    bool wants_input);

} // namespace lockstep::kernels
