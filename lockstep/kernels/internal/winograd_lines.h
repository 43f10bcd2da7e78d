// SPDX-License-Identifier: BSD-3-Clause
//
// Winograd's transforms of one line and of both directions: Note [Winograd's
// transforms] in winograd_loops.h, whose source alone includes this.
#pragma once

#include "lockstep/kernels/internal/lanes.h"
#include "lockstep/kernels/internal/winograd_loops.h"

// Arrays of the language: Note [One source, several instruction sets].
// NOLINTBEGIN(modernize-avoid-c-arrays)

namespace lockstep::kernels::internal {

// The points beside 0 and infinity: +-kNear and +-kFar, whose product is 1.
inline constexpr float kNear = 2.0F / 3.0F;
inline constexpr float kFar = 1.5F;

constexpr float square(float x) {
  return x * x;
}

// By what the taps' values in a point are divided: half the product of its
// distances from the other points.
inline constexpr float kByNear =
    1 / (2 * square(kNear) * (square(kNear) - square(kFar)));
inline constexpr float kByFar =
    1 / (2 * square(kFar) * (square(kFar) - square(kNear)));

// One line each, `kFrom` numbers to `kTo` of vectors of channels. A function
// here is inlined into loops with a bound known to the compiler, which keeps
// the lines in registers.

template <class Floats>
struct WindowToSpectrum {
  static constexpr int kFrom = kTileWindow;
  static constexpr int kTo = kTileWindow;

  LOCKSTEP_INLINE static void apply(
      const Floats (&d)[kFrom],
      Floats (&to)[kTo]) {
    constexpr float kSquares = square(kNear) + square(kFar);
    to[0] = d[0] - kSquares * d[2] + d[4];
    const Floats near_even = d[4] - square(kFar) * d[2];
    const Floats near_odd = kNear * d[3] - kFar * d[1];
    to[1] = near_even + near_odd;
    to[2] = near_even - near_odd;
    const Floats far_even = d[4] - square(kNear) * d[2];
    const Floats far_odd = kFar * d[3] - kNear * d[1];
    to[3] = far_even + far_odd;
    to[4] = far_even - far_odd;
    to[5] = d[1] - kSquares * d[3] + d[5];
  }
};

template <class Floats>
struct GradientToSpectrum {
  static constexpr int kFrom = kTileOutputs;
  static constexpr int kTo = kTileWindow;

  LOCKSTEP_INLINE static void apply(
      const Floats (&g)[kFrom],
      Floats (&to)[kTo]) {
    to[0] = g[0];
    const Floats near_even = g[0] + square(kNear) * g[2];
    const Floats near_odd = kNear * g[1] + square(kNear) * kNear * g[3];
    to[1] = near_even + near_odd;
    to[2] = near_even - near_odd;
    const Floats far_even = g[0] + square(kFar) * g[2];
    const Floats far_odd = kFar * g[1] + square(kFar) * kFar * g[3];
    to[3] = far_even + far_odd;
    to[4] = far_even - far_odd;
    to[5] = g[3];
  }
};

template <class Floats>
struct SpectrumToOutputs {
  static constexpr int kFrom = kTileWindow;
  static constexpr int kTo = kTileOutputs;

  LOCKSTEP_INLINE static void apply(
      const Floats (&m)[kFrom],
      Floats (&to)[kTo]) {
    const Floats near_even = m[1] + m[2];
    const Floats near_odd = m[1] - m[2];
    const Floats far_even = m[3] + m[4];
    const Floats far_odd = m[3] - m[4];
    to[0] = m[0] + near_even + far_even;
    to[1] = kNear * near_odd + kFar * far_odd;
    to[2] = square(kNear) * near_even + square(kFar) * far_even;
    to[3] =
        square(kNear) * kNear * near_odd + square(kFar) * kFar * far_odd + m[5];
  }
};

template <class Floats>
struct TapsToSpectrum {
  static constexpr int kFrom = 3;
  static constexpr int kTo = kTileWindow;

  LOCKSTEP_INLINE static void apply(
      const Floats (&w)[kFrom],
      Floats (&to)[kTo]) {
    to[0] = w[0];
    const Floats near_even = kByNear * w[0] + kByNear * square(kNear) * w[2];
    const Floats near_odd = kByNear * kNear * w[1];
    to[1] = near_even + near_odd;
    to[2] = near_even - near_odd;
    const Floats far_even = kByFar * w[0] + kByFar * square(kFar) * w[2];
    const Floats far_odd = kByFar * kFar * w[1];
    to[3] = far_even + far_odd;
    to[4] = far_even - far_odd;
    to[5] = w[2];
  }
};

template <class Floats>
struct SpectrumToTaps {
  static constexpr int kFrom = kTileWindow;
  static constexpr int kTo = 3;

  LOCKSTEP_INLINE static void apply(
      const Floats (&u)[kFrom],
      Floats (&to)[kTo]) {
    const Floats near_even = kByNear * (u[1] + u[2]);
    const Floats near_odd = kByNear * (u[1] - u[2]);
    const Floats far_even = kByFar * (u[3] + u[4]);
    const Floats far_odd = kByFar * (u[3] - u[4]);
    to[0] = u[0] + near_even + far_even;
    to[1] = kNear * near_odd + kFar * far_odd;
    to[2] = square(kNear) * near_even + square(kFar) * far_even + u[5];
  }
};

// Both directions: `from.get(row, column)` of kFrom x kFrom, `to.put(row,
// column, numbers)` of kTo x kTo.
template <class Line, class Floats, class From, class To>
LOCKSTEP_INLINE void in_both_directions(const From& from, const To& to) {
  Floats half[Line::kTo][Line::kFrom];
#pragma GCC unroll 6 // kTileWindow
  for (int column = 0; column < Line::kFrom; ++column) {
    Floats line[Line::kFrom];
#pragma GCC unroll 6 // kTileWindow
    for (int row = 0; row < Line::kFrom; ++row) {
      line[row] = from.get(row, column);
    }
    Floats result[Line::kTo];
    Line::apply(line, result);
#pragma GCC unroll 6 // kTileWindow
    for (int row = 0; row < Line::kTo; ++row) {
      half[row][column] = result[row];
    }
  }
#pragma GCC unroll 6 // kTileWindow
  for (int row = 0; row < Line::kTo; ++row) {
    Floats result[Line::kTo];
    Line::apply(half[row], result);
#pragma GCC unroll 6 // kTileWindow
    for (int column = 0; column < Line::kTo; ++column) {
      to.put(row, column, result[column]);
    }
  }
}

// NOLINTEND(modernize-avoid-c-arrays)

} // namespace lockstep::kernels::internal
