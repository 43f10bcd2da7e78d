// SPDX-License-Identifier: BSD-3-Clause
//
// Which taps of a convolution meet which pixels: integers only. Pixels, outputs
// and taps are numbered row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <c10/util/ArrayRef.h>

namespace lockstep::kernels {

/// Where a convolution applies its kernel. Units: pixels, [height, width], or
/// one number for both.
struct KernelSteps {
  at::IntArrayRef stride = {};
  at::IntArrayRef padding = {};
  at::IntArrayRef dilation = {};
};

/// One direction of a convolution, down or across.
class TapLine {
 public:
  /// `direction`: 0 is down, 1 across.
  TapLine(
      std::int64_t pixel_count,
      std::int64_t tap_count,
      const KernelSteps& steps,
      std::size_t direction);

  /// The pixel under `tap` for `output`; none if that is padding.
  [[nodiscard]] std::optional<std::int64_t> pixel(
      std::int64_t output,
      std::int64_t tap) const;

  std::int64_t pixels = 0;
  std::int64_t outputs = 0;
  /// The taps from the first to the last that meet a pixel at all: of 3 taps
  /// with padding 1, the middle one alone on a line of one pixel.
  std::int64_t first_tap = 0;
  std::int64_t live_taps = 0;

 private:
  std::int64_t stride_;
  std::int64_t padding_;
  std::int64_t dilation_;
};

/// What `length` neighbouring taps under as many neighbouring pixels add to an
/// output. Taps are numbered within the live ones.
struct Term {
  std::int64_t output = 0;
  std::int64_t pixel = 0;
  std::int64_t tap = 0;
  std::int64_t length = 0;

  friend bool operator==(const Term&, const Term&) = default;
};

/// All that is added, output by output, in runs as long as possible.
std::vector<Term> convolution_terms(const TapLine& down, const TapLine& across);

} // namespace lockstep::kernels
