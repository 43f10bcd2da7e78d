// SPDX-License-Identifier: BSD-3-Clause
//
// Samples as pictures for people.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"

namespace lockstep::internal {

/// Of one sample's numbers: what its data set made of pixels is undone; where
/// that is not known, the lowest is black and the highest white. Of other than
/// three channels the first one is shown.
/// Shape: `numbers` has those of `shape`, channel by channel.
Image sample_picture(
    std::span<const float> numbers,
    const ImageShape& shape,
    const PixelFormat& format);

/// Each class in its colour. Shape: `classes` [height, width].
Image mask_picture(
    std::span<const std::int64_t> classes,
    std::int64_t height,
    std::int64_t width);

/// One beside the other; all of one height.
Image side_by_side(std::span<const Image> pictures);

/// Made smaller by a whole number until no side is longer than `longest`; each
/// pixel is the average of a square.
Image thumbnail(const Image& image, std::int64_t longest);

} // namespace lockstep::internal
