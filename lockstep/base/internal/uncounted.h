// SPDX-License-Identifier: BSD-3-Clause
//
// What stands for a class where nothing is counted.
#pragma once

#include <cstdint>

namespace lockstep {

/// As PyTorch's losses have it.
inline constexpr std::int64_t kUncountedClass = -100;

/// In masks of so many classes: what files of 8 bits have, unless it is a
/// class.
constexpr std::int64_t uncounted_pixel(std::int64_t num_classes) {
  constexpr std::int64_t kWhite = 255;
  return num_classes > kWhite ? kUncountedClass : kWhite;
}

} // namespace lockstep
