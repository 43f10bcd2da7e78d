// SPDX-License-Identifier: BSD-3-Clause
//
// The taps of a convolution's weight as right operands of products.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::kernels {

/// [taps][columns / panel][depth][panel], panel as in ProductLoops.
struct TapPanels {
  at::Tensor numbers;
  std::int64_t depth = 0;
  std::int64_t columns = 0;

  [[nodiscard]] const float* of(std::int64_t tap) const {
    return numbers.const_data_ptr<float>() + tap * depth * columns;
  }
};

/// From input to output channels if `is_forward`, else the way back. Taps that
/// are not used are left empty.
/// Shape: `weight` [out, in, kh, kw], float32; out and in are multiples of
/// kChannelStep; `is_used` [kh * kw].
TapPanels pack_taps(
    const at::Tensor& weight,
    const std::vector<bool>& is_used,
    bool is_forward);

} // namespace lockstep::kernels
