// SPDX-License-Identifier: BSD-3-Clause
//
// An image of any sides in squares, and masks of the squares as one mask: a
// model that was trained on squares says something of every pixel.
//   for (const ImageSquare& square : squares_over(image.shape)) {
//     masks.push_back(model(cut(image, square)));
//   }
//   Image mask = join_masks(image.shape, squares, masks);
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/images.h"

namespace lockstep::internal {

/// Units: pixels of the image.
struct ImageSquare {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t side = 0;

  friend bool operator==(const ImageSquare&, const ImageSquare&) = default;
};

/// As few squares of the shorter side as cover the image, evenly spread.
std::vector<ImageSquare> squares_over(const ImageShape& shape);

/// The pixels of a square. Errors: none; it lies in the image.
Image cut(const Image& image, const ImageSquare& square);

/// A mask of `shape` (its channels are 1) of those of the squares, which are
/// squares of any size. Where two overlap, the one whose middle is nearer
/// counts. Each pixel is the nearest one, as at::upsample_nearest_exact finds
/// it: images are resized around the middles of pixels, too.
Image join_masks(
    const ImageShape& shape,
    const std::vector<ImageSquare>& squares,
    const std::vector<Image>& masks);

} // namespace lockstep::internal
