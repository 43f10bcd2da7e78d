// SPDX-License-Identifier: BSD-3-Clause
//
// The taps of a convolution's weight as right operands of products.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/product_loops.h"

namespace lockstep::kernels {

/// [taps][columns / panel][depth][panel], panel as in ProductLoops. `Number`:
/// float or Pair, of which `depth` counts pairs.
template <class Number>
struct TapPanels {
  at::Tensor numbers;
  std::int64_t depth = 0;
  std::int64_t columns = 0;

  [[nodiscard]] const Number* of(std::int64_t tap) const {
    return static_cast<const Number*>(numbers.const_data_ptr()) +
           tap * depth * columns;
  }
};

/// From input to output channels if `is_forward`, else the way back. Taps that
/// are not used are left empty.
/// Shape: `weight` [out, in, kh, kw], float32, or bfloat16 for Pair; out and in
/// are multiples of kChannelStep; `is_used` [kh * kw].
template <class Number>
TapPanels<Number> pack_taps(
    const at::Tensor& weight,
    const std::vector<bool>& is_used,
    bool is_forward);

extern template TapPanels<float>
pack_taps(const at::Tensor&, const std::vector<bool>&, bool);
extern template TapPanels<Pair>
pack_taps(const at::Tensor&, const std::vector<bool>&, bool);

} // namespace lockstep::kernels
