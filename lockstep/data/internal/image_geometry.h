// SPDX-License-Identifier: BSD-3-Clause
//
// Moves the pixels of an image, and what is marked in it in step:
// torchvision.transforms.v2.functional's crop, flips, affine and erase on uint8
// tensors (torchvision 0.29). Masks are moved by the nearest pixel and filled
// with `kIgnoredPixel`.
#pragma once

#include <array>
#include <cstdint>

#include "lockstep/data/augment.h"
#include "lockstep/data/internal/resize_uint8.h"

namespace lockstep::internal {

/// The region, which may lie outside: there pixels are `fill`. A crop, a pad,
/// or both.
Image cropped(const Image& image, const Region& region, std::uint8_t fill);
void crop(AnnotatedImage& sample, const Region& region, std::uint8_t fill);

void flip_horizontally(AnnotatedImage& sample);
void flip_vertically(AnnotatedImage& sample);

/// The region, inside of the image, resized to `height` x `width`.
void crop_and_resize(
    AnnotatedImage& sample,
    const Region& region,
    std::int64_t height,
    std::int64_t width);

/// As `fitted` (resize_uint8.h).
void fit(AnnotatedImage& sample, std::int64_t height, std::int64_t width);

/// As torchvision's `affine`: turned by `angle`, then moved, around the
/// image's middle, or around its upper left corner.
struct AffineMap {
  /// Units: degrees, clockwise.
  double angle = 0;
  /// Units: pixels to the right, and down.
  double right = 0;
  double down = 0;
  double scale = 1;
  /// Units: degrees.
  double shear_x = 0;
  double shear_y = 0;
  bool around_corner = false;
  /// Else the nearest pixel.
  bool is_bilinear = false;
  std::uint8_t fill = 0;
};

/// From the place of an output pixel to that in the input, both counted from
/// the image's middle: x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y +
/// m[5]. torchvision's _get_inverse_affine_matrix.
std::array<double, 6> inverse_matrix(
    const AffineMap& map,
    const ImageShape& shape);

/// Places are computed in double, torchvision's in float32: a pixel that lies
/// half way between two may come from the other one.
Image moved(const Image& image, const AffineMap& map);
void move(AnnotatedImage& sample, const AffineMap& map);

/// Sets the region, inside of the image, to `value`.
void erase(Image& image, const Region& region, std::uint8_t value);

} // namespace lockstep::internal
