// SPDX-License-Identifier: BSD-3-Clause
//
// How the classes of a mask look in a picture for people.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::internal {

/// Red, green, blue.
using Color = std::array<std::uint8_t, 3>;

/// The palette of VOC, a light one for what is no class and for 255, which is
/// not counted.
Color class_color(std::int64_t label);

} // namespace lockstep::internal
