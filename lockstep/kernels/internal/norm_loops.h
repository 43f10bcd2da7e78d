// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of batch normalisation over one tile of numbers, for the widest
// vectors that the processor has. What the tiles are: norm_tiles.h.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lockstep::kernels {

/// The bits of a bfloat16.
using Bfloat16Bits = std::uint16_t;

/// Rows of numbers. Either each column has parameters and sums of its own, or
/// the tile is one row that shares one of each: a plane of one channel.
struct TileSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  /// Units: numbers from a row to the next.
  std::int64_t stride = 0;
  bool is_plane = false;
};

/// Of T, float or Bfloat16Bits; arithmetic is float32's.
template <class T>
struct NormLoops {
  /// `sums` of the numbers of a column, and `squares`: the sums of the squares
  /// of their distances from the mean of the column in this tile.
  struct Moments {
    const T* x = nullptr;
    float* sums = nullptr;
    float* squares = nullptr;
  };
  /// y = x * scale + shift + addend, and not less than `floor`.
  struct Normalise {
    const T* x = nullptr;
    const T* addend = nullptr;
    const float* scale = nullptr;
    const float* shift = nullptr;
    /// 0: ReLU; -Inf: none.
    float floor = 0;
    T* y = nullptr;
  };
  /// The gradient that passes the ReLU: `grad` where x * scale + shift is not
  /// `floor` or less. 0: that of a ReLU; NaN: of none.
  struct Passed {
    const T* grad = nullptr;
    const T* x = nullptr;
    const float* scale = nullptr;
    const float* shift = nullptr;
    float floor = std::numeric_limits<float>::quiet_NaN();
  };
  /// `sums` of the gradient of a column, and `products`: the sums of gradient *
  /// (x - mean).
  struct Reduce {
    Passed passed = {};
    const float* mean = nullptr;
    float* sums = nullptr;
    float* products = nullptr;
    /// Where there was an addend: what passed the ReLU is seen by its output,
    /// and the gradient that passed is kept, which is the addend's.
    const T* output = nullptr;
    T* kept = nullptr;
  };
  /// result = gradient * by_grad + (x - mean) * by_distance + constant.
  struct Gradient {
    Passed passed = {};
    const float* mean = nullptr;
    const float* by_grad = nullptr;
    const float* by_distance = nullptr;
    const float* constant = nullptr;
    T* result = nullptr;
  };

  void (*moments)(const TileSize&, const Moments&) = nullptr;
  void (*normalise)(const TileSize&, const Normalise&) = nullptr;
  void (*reduce)(const TileSize&, const Reduce&) = nullptr;
  void (*gradient)(const TileSize&, const Gradient&) = nullptr;
};

/// Those that this processor can run, with the widest vectors first.
template <class T>
std::vector<const NormLoops<T>*> usable_norm_loops();

/// The first of them.
template <class T>
const NormLoops<T>& norm_loops();

} // namespace lockstep::kernels
