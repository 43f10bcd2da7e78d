// SPDX-License-Identifier: BSD-3-Clause
//
// Pixels to floats, (x / 255 - mean) / std with a rounding after each step, as
// three PyTorch operators do it. Two ways with the same bits: a table of all
// 256 results, and AVX2 with FMA, which divides without a division. Whether
// that rounds as the table does is found out for all 256 pixels when one is
// made.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

/// Normalises one channel. Threads: safe to use from several threads.
class Normaliser {
 public:
  /// Both are of pixels in [0, 1].
  Normaliser(float mean, float std);

  /// Writes `pixels.size()` floats to `out`, the fastest way this CPU has.
  void apply(std::span<const std::uint8_t> pixels, float* out) const;
  /// The same by table lookup.
  void apply_table(std::span<const std::uint8_t> pixels, float* out) const;

  /// True if `apply` uses AVX2 and FMA.
  [[nodiscard]] bool is_vectorised() const noexcept {
    return is_vectorised_;
  }

 private:
  float mean_;
  float std_;
  bool is_vectorised_ = false;
  std::array<float, 256> table_ = {};
};

} // namespace lockstep
