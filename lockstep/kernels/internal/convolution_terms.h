// SPDX-License-Identifier: BSD-3-Clause
//
// What a convolution is, and which of its taps meet which pixels: integers
// only. Pixels, outputs and taps are numbered row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/kernels/internal/convolution_times.h"

namespace lockstep::kernels {

/// Whether LibTorch takes them.
bool are_valid(const KernelSteps& steps);

/// One direction of a convolution, down or across.
class TapLine {
 public:
  /// `direction`: of the numbers of `steps`; of a map 0 is down, 1 across.
  TapLine(
      std::int64_t pixel_count,
      std::int64_t tap_count,
      const KernelSteps& steps,
      std::size_t direction);

  /// The tap through which `output` sees `pixel`; none if it does not.
  [[nodiscard]] std::optional<std::int64_t> tap(
      std::int64_t output,
      std::int64_t pixel) const;

  /// Whether each output sees each pixel.
  [[nodiscard]] bool is_dense() const;

  /// Taps through which no output sees a pixel: all of theirs is padding.
  [[nodiscard]] std::vector<std::int64_t> dead_taps() const;

  std::int64_t pixels = 0;
  std::int64_t taps = 0;
  std::int64_t outputs = 0;

 private:
  std::int64_t stride_;
  std::int64_t padding_;
  std::int64_t dilation_;
};

/// Outputs that see the same pixels, each pixel through a tap of its own.
struct Meeting {
  std::vector<std::int64_t> outputs = {};
  std::vector<std::int64_t> pixels = {};

  friend bool operator==(const Meeting&, const Meeting&) = default;
};

/// `length` outputs in a row that see as many pixels in a row through one tap.
struct TapRun {
  std::int64_t output = 0;
  std::int64_t pixel = 0;
  std::int64_t length = 0;

  friend bool operator==(const TapRun&, const TapRun&) = default;
};

/// All taps of a map.
class TapTable {
 public:
  TapTable(const TapLine& down, const TapLine& across);

  /// -1 if `output` does not see `pixel`.
  [[nodiscard]] std::int64_t tap(std::int64_t output, std::int64_t pixel) const;

  [[nodiscard]] std::int64_t outputs() const {
    return outputs_;
  }
  [[nodiscard]] std::int64_t pixels() const {
    return pixels_;
  }

  /// Calls visit(output, pixel, tap) for all that meet, in this order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t output = 0; output < outputs_; ++output) {
      for (std::int64_t pixel = 0; pixel < pixels_; ++pixel) {
        const std::int64_t met = tap(output, pixel);
        if (met >= 0) {
          visit(output, pixel, met);
        }
      }
    }
  }

  /// Each output that sees a pixel is in one of them.
  [[nodiscard]] std::vector<Meeting> meetings_of_outputs() const;
  /// Each pixel that is seen is in one of them.
  [[nodiscard]] std::vector<Meeting> meetings_of_pixels() const;
  /// Where each tap is used: [tap][run]. A tap over padding has none.
  [[nodiscard]] std::vector<std::vector<TapRun>> runs_of_taps() const;

 private:
  std::int64_t outputs_;
  std::int64_t pixels_;
  std::int64_t tap_count_;
  std::vector<std::int64_t> taps_; // [output][pixel]
};

} // namespace lockstep::kernels
