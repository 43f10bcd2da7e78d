// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/class_color.h"

#include "lockstep/base/internal/uncounted.h"

namespace lockstep::internal {

// The bits of a class, dealt to red, green and blue from the highest down.
// Source: VOCdevkit, VOClabelcolormap.m.
Color class_color(std::int64_t label) {
  if (label < 0 || label >= kUncountedPixel) {
    return {224, 224, 192};
  }
  Color color{};
  for (int shift = 7; shift >= 0; --shift, label >>= 3) {
    for (std::size_t c = 0; c < color.size(); ++c) {
      const auto bit = static_cast<unsigned>(label >> c & 1);
      color.at(c) = static_cast<std::uint8_t>(color.at(c) | bit << shift);
    }
  }
  return color;
}

} // namespace lockstep::internal
