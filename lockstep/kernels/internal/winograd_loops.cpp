// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/winograd_loops.h"

#include "lockstep/kernels/internal/lanes.h"
#include "lockstep/kernels/internal/winograd_lines.h"

namespace lockstep::kernels {
namespace {

using internal::GradientToSpectrum;
using internal::in_both_directions;
using internal::Lanes;
using internal::SpectrumToOutputs;
using internal::SpectrumToTaps;
using internal::TapsToSpectrum;
using internal::WindowToSpectrum;

// Where a tile's first pixel is in a map; beyond the map there are zeros.
template <int kBytes, class Number>
struct Pixels {
  using L = Lanes<kBytes>;
  Number* image = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  const float* bias = nullptr;

  LOCKSTEP_INLINE bool has(int down, int across) const {
    return row + down >= 0 && row + down < height && column + across >= 0 &&
           column + across < width;
  }
  LOCKSTEP_INLINE Number* at(int down, int across) const {
    return image + ((row + down) * width + column + across) * channels;
  }
  LOCKSTEP_INLINE typename L::Floats get(int down, int across) const {
    return has(down, across) ? L::load(at(down, across)) : L::all(0);
  }
  LOCKSTEP_INLINE void
  put(int down, int across, const typename L::Floats& values) const {
    if (has(down, across)) {
      L::store(
          at(down, across),
          bias == nullptr ? values : values + L::load(bias));
    }
  }
};

// Numbers `step` apart, of a spectrum or of taps; kWidth in a line.
template <int kBytes, int kWidth, class Number>
struct Grid {
  using L = Lanes<kBytes>;
  Number* first = nullptr;
  std::int64_t step = 0;

  LOCKSTEP_INLINE typename L::Floats get(int row, int column) const {
    return L::load(first + (row * kWidth + column) * step);
  }
  LOCKSTEP_INLINE void
  put(int row, int column, const typename L::Floats& values) const {
    L::store(first + (row * kWidth + column) * step, values);
  }
};

// Calls `work.apply(pixels, place)` for each vector of channels of each tile,
// `place` being where it is in [rows][channels of the part].
template <int kBytes, class Number, class Work>
LOCKSTEP_INLINE void for_tiles(
    const TiledMap& map,
    const TilePart& part,
    Number* numbers,
    const float* bias,
    const Work& work) {
  const std::int64_t tiles_of_image = map.tiles_down * map.tiles_across;
  for (std::int64_t i = 0; i < part.tiles; ++i) {
    const std::int64_t image = (part.tile + i) / tiles_of_image;
    const std::int64_t tile = (part.tile + i) % tiles_of_image;
    for (std::int64_t c = 0; c < part.channels; c += Lanes<kBytes>::kCount) {
      const std::int64_t channel = part.channel + c;
      work.apply(
          Pixels<kBytes, Number>{
              .image = numbers + image * map.height * map.width * map.channels +
                       channel,
              .row = tile / map.tiles_across * kTileOutputs - map.above,
              .column = tile % map.tiles_across * kTileOutputs - map.left,
              .height = map.height,
              .width = map.width,
              .channels = map.channels,
              .bias = bias == nullptr ? nullptr : bias + channel},
          i * part.channels + c);
    }
  }
}

template <int kBytes, template <class> class Line>
struct Spectrum {
  float* to = nullptr;
  std::int64_t step = 0;

  template <class P>
  LOCKSTEP_INLINE void apply(const P& pixels, std::int64_t place) const {
    using Floats = typename Lanes<kBytes>::Floats;
    in_both_directions<Line<Floats>, Floats>(
        pixels,
        Grid<kBytes, kTileWindow, float>{.first = to + place, .step = step});
  }
};

template <int kBytes>
struct Outputs {
  const float* from = nullptr;
  std::int64_t step = 0;

  template <class P>
  LOCKSTEP_INLINE void apply(const P& pixels, std::int64_t place) const {
    using Floats = typename Lanes<kBytes>::Floats;
    in_both_directions<SpectrumToOutputs<Floats>, Floats>(
        Grid<kBytes, kTileWindow, const float>{
            .first = from + place,
            .step = step},
        pixels);
  }
};

template <int kBytes, template <class> class Line>
LOCKSTEP_INLINE void spectrum_of(
    const TiledMap& map,
    const TilePart& part,
    const float* from,
    float* to) {
  for_tiles<kBytes>(
      map,
      part,
      from,
      nullptr,
      Spectrum<kBytes, Line>{.to = to, .step = part.step});
}

template <int kBytes>
LOCKSTEP_INLINE void outputs_of(
    const TiledMap& map,
    const TilePart& part,
    const float* from,
    const float* bias,
    float* to) {
  for_tiles<kBytes>(
      map,
      part,
      to,
      bias,
      Outputs<kBytes>{.from = from, .step = part.step});
}

template <int kBytes>
LOCKSTEP_INLINE void weight_spectrum_of(
    const WinogradLoops::Weight& weight,
    const float* from,
    float* to) {
  using L = Lanes<kBytes>;
  using Floats = typename L::Floats;
  constexpr std::int64_t kPanel = 2 * L::kCount;
  for (std::int64_t row = weight.begin; row < weight.end; ++row) {
    for (std::int64_t column = 0; column < weight.columns;
         column += L::kCount) {
      const std::int64_t panel = column / kPanel * kPanel;
      in_both_directions<TapsToSpectrum<Floats>, Floats>(
          Grid<kBytes, 3, const float>{
              .first = from + row * weight.row_step + column,
              .step = weight.tap_step},
          Grid<kBytes, kTileWindow, float>{
              .first = to + panel * weight.rows + row * kPanel + column - panel,
              .step = spectrum_step(weight.rows, weight.columns)});
    }
  }
}

template <int kBytes>
LOCKSTEP_INLINE void weight_gradient_of(
    const WinogradLoops::Weight& weight,
    const float* from,
    float* to) {
  using Floats = typename Lanes<kBytes>::Floats;
  for (std::int64_t row = weight.begin; row < weight.end; ++row) {
    for (std::int64_t column = 0; column < weight.columns;
         column += Lanes<kBytes>::kCount) {
      in_both_directions<SpectrumToTaps<Floats>, Floats>(
          Grid<kBytes, kTileWindow, const float>{
              .first = from + row * weight.columns + column,
              .step = spectrum_step(weight.rows, weight.columns)},
          Grid<kBytes, 3, float>{
              .first = to + row * weight.row_step + column,
              .step = weight.tap_step});
    }
  }
}

// The functions of an instruction set.
// NOLINTBEGIN(bugprone-macro-parentheses): attributes and numbers
#define LOCKSTEP_WINOGRAD(NAME, BYTES, TARGET)                     \
  struct NAME {                                                    \
    TARGET static void window_spectrum(                            \
        const TiledMap& map,                                       \
        const TilePart& part,                                      \
        const float* from,                                         \
        float* to) {                                               \
      spectrum_of<BYTES, WindowToSpectrum>(map, part, from, to);   \
    }                                                              \
    TARGET static void gradient_spectrum(                          \
        const TiledMap& map,                                       \
        const TilePart& part,                                      \
        const float* from,                                         \
        float* to) {                                               \
      spectrum_of<BYTES, GradientToSpectrum>(map, part, from, to); \
    }                                                              \
    TARGET static void outputs(                                    \
        const TiledMap& map,                                       \
        const TilePart& part,                                      \
        const float* from,                                         \
        const float* bias,                                         \
        float* to) {                                               \
      outputs_of<BYTES>(map, part, from, bias, to);                \
    }                                                              \
    TARGET static void weight_spectrum(                            \
        const WinogradLoops::Weight& weight,                       \
        const float* from,                                         \
        float* to) {                                               \
      weight_spectrum_of<BYTES>(weight, from, to);                 \
    }                                                              \
    TARGET static void weight_gradient(                            \
        const WinogradLoops::Weight& weight,                       \
        const float* from,                                         \
        float* to) {                                               \
      weight_gradient_of<BYTES>(weight, from, to);                 \
    }                                                              \
    static constexpr WinogradLoops kTable{                         \
        .panel = 2 * Lanes<BYTES>::kCount,                         \
        .window_spectrum = &window_spectrum,                       \
        .gradient_spectrum = &gradient_spectrum,                   \
        .outputs = &outputs,                                       \
        .weight_spectrum = &weight_spectrum,                       \
        .weight_gradient = &weight_gradient};                      \
  };

LOCKSTEP_WINOGRAD(WinogradPlain, 16, )
// NOLINTEND(bugprone-macro-parentheses)
#ifdef __x86_64__
LOCKSTEP_WINOGRAD(WinogradAvx2, 32, LOCKSTEP_AVX2)
LOCKSTEP_WINOGRAD(WinogradAvx512, 64, LOCKSTEP_AVX512)
#else
using WinogradAvx2 = WinogradPlain;
using WinogradAvx512 = WinogradPlain;
#endif

} // namespace

std::vector<const WinogradLoops*> usable_winograd_loops() {
  return internal::usable_tables(
      &WinogradAvx512::kTable,
      &WinogradAvx2::kTable,
      &WinogradPlain::kTable);
}

const WinogradLoops& winograd_loops() {
  static const WinogradLoops& widest = *usable_winograd_loops().front();
  return widest;
}

} // namespace lockstep::kernels
