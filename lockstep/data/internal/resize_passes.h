// SPDX-License-Identifier: BSD-3-Clause
//
// The two passes of a resize, line by line, in PyTorch's bits: along a line of
// pixels, then over lines that lie one below the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/data/internal/resize_float.h"

namespace lockstep::internal {

/// Floats behind a line that `resize_columns` may read, and behind `out` that
/// it may write.
inline constexpr std::int64_t kLineSlack = 1;

/// Along a line of pixels, whose `channels` numbers lie side by side.
/// Units: `out` has axis.outputs.size() * channels floats.
void resize_columns(
    const ResizeAxis& axis,
    std::int64_t channels,
    const float* line,
    float* out);

/// The weighted sum of lines, of which the next one is `stride` floats further.
/// Units: `out` has `count` floats.
void sum_lines(
    std::span<const float> weights,
    const float* lines,
    std::int64_t stride,
    std::int64_t count,
    float* out);

/// Rounded half to even, and not below 0 or above 255.
void round_to_bytes(std::span<const float> values, std::uint8_t* out);

} // namespace lockstep::internal
