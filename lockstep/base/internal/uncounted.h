// SPDX-License-Identifier: BSD-3-Clause
//
// What stands for a class where nothing is counted.
#pragma once

#include <cstdint>

namespace lockstep {

/// As PyTorch's losses have it.
inline constexpr std::int64_t kUncountedClass = -100;

/// What mask files of 8 bits have.
inline constexpr std::int64_t kUncountedPixel = 255;

/// In masks of so many classes: `kUncountedPixel`, unless it is a class.
constexpr std::int64_t uncounted_pixel(std::int64_t num_classes) {
  return num_classes > kUncountedPixel ? kUncountedClass : kUncountedPixel;
}

} // namespace lockstep
