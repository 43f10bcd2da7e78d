// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of a Winograd convolution, for the widest vectors that the
// processor has. What they add up to is told in winograd.h.
//
// Note [Winograd's transforms]
// 4x4 outputs of a 3x3 convolution see a window of 6x6 pixels. Polynomials of
// degree 5 that agree in 6 points are equal, so along a line of a window the
// sums of products become products of values in 6 points (S. Winograd,
// Arithmetic Complexity of Computations, 1980; as matrices: A. Lavin and
// S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015). In two
// dimensions a window becomes 36 numbers, its spectrum, and so do the taps: 36
// multiplications take the place of 144. The points are 0, 2/3, -2/3, 3/2, -3/2
// and infinity: of all pairs a and 1/a that were tried they add the least to
// the rounding errors; the usual points 1 and 2 add twice as much.
//
// Spectra are [36][tiles][channels], spectrum_step apart: for each of the 36 a
// matrix product remains. Maps have channels last; a tile is numbered image by
// image and row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/kernels/internal/product_loops.h"

namespace lockstep::kernels {

/// Outputs of a tile along a line.
inline constexpr std::int64_t kTileOutputs = 4;
/// Numbers of a window along a line, and of its spectrum.
inline constexpr std::int64_t kTileWindow = 6;
inline constexpr std::int64_t kSpectrum = kTileWindow * kTileWindow;
inline constexpr std::int64_t kTaps = 9;
/// Units: numbers from one of the 36 of a spectrum to the next. A cache line
/// more than they take: else 36 lines of the first cache would share a place.
constexpr std::int64_t spectrum_step(std::int64_t rows, std::int64_t columns) {
  return rows * columns + kRowGap;
}

/// A map [images, height, width, channels] that is cut into tiles.
struct TiledMap {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  /// Pixels above and left of the map in the windows of its first tiles.
  std::int64_t above = 0;
  std::int64_t left = 0;
  std::int64_t tiles_down = 0;
  std::int64_t tiles_across = 0;
};

/// Some tiles, and some channels of each.
struct TilePart {
  std::int64_t tile = 0;
  std::int64_t tiles = 0;
  std::int64_t channel = 0;
  std::int64_t channels = 0;
  /// In the spectrum, from one of the 36 to the next: spectrum_step(rows,
  /// channels) of at least as many rows as tiles.
  std::int64_t step = 0;
};

/// Threads: any. Nothing is kept: pointers and their memory are the caller's,
/// of any alignment. There are no errors; sizes must be as described.
struct WinogradLoops {
  /// Some rows of a convolution's weight, or of the gradient of one. The number
  /// of a tap is at [row * row_step + tap * tap_step + column]; with a negative
  /// `tap_step` the taps are read backwards.
  struct Weight {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    /// Of the whole weight.
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t row_step = 0;
    std::int64_t tap_step = 0;
  };

  /// Columns of a panel of a weight's spectrum: as in the ProductLoops of the
  /// same vectors.
  std::int64_t panel = 0;

  /// The spectrum of windows, pixels beyond the map being 0:
  /// [36][rows][channels of the part].
  void (*window_spectrum)(
      const TiledMap& map,
      const TilePart& part,
      const float* from,
      float* to) = nullptr;
  /// The spectrum of the 4x4 gradients of tiles, likewise.
  void (*gradient_spectrum)(
      const TiledMap& map,
      const TilePart& part,
      const float* from,
      float* to) = nullptr;
  /// The 4x4 outputs out of the spectrum [36][rows][channels of the part];
  /// those within the map are written, with `bias` added if it is not null.
  void (*outputs)(
      const TiledMap& map,
      const TilePart& part,
      const float* from,
      const float* bias,
      float* to) = nullptr;
  /// The spectrum of 3x3 taps: [36][column / panel][rows][panel].
  void (*weight_spectrum)(const Weight& weight, const float* from, float* to) =
      nullptr;
  /// The gradient of 3x3 taps out of the spectrum [36][rows][columns].
  void (*weight_gradient)(const Weight& weight, const float* from, float* to) =
      nullptr;
};

/// Those that this processor can run, with the widest vectors first.
std::vector<const WinogradLoops*> usable_winograd_loops();

/// The first of them.
const WinogradLoops& winograd_loops();

} // namespace lockstep::kernels
