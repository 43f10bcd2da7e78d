// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of images in other sizes: torchvision's `resize` of uint8 tensors,
// bilinear and antialiased, as it computes in float32, rounded half to even. On
// processors with AVX2 it computes in whole numbers: a pixel in ten or so is
// one level off.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "lockstep/data/images.h"
#include "lockstep/data/internal/resize_float.h"

namespace lockstep::internal {

/// Python's `round`.
inline std::int64_t half_to_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

/// A rectangle of pixels, which may lie partly outside of its image.
struct Region {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

/// Where the whole of an image goes before its middle is cut out: its shorter
/// side, relative to the wanted one, gets the wanted length.
struct Fit {
  /// Units: pixels of the whole image, resized.
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// The middle, in the resized image.
  Region middle = {};
};
Fit fit_of(const ImageShape& from, std::int64_t height, std::int64_t width);

/// The image resized so that it covers `height` x `width`, and its middle:
/// torchvision's Resize and CenterCrop. What is cut off is not computed.
Image fitted(const Image& image, std::int64_t height, std::int64_t width);

/// The same as planes. Shape: [C, height, width].
std::vector<std::uint8_t>
fitted_planes(const Image& image, std::int64_t height, std::int64_t width);

/// The same part of a mask, by the nearest pixel. Shape: [size, size].
Image fitted_mask(const Image& mask, std::int64_t size);

/// A region inside of the image, resized.
Image resized(
    const Image& image,
    const Region& region,
    std::int64_t height,
    std::int64_t width);

/// `part` of the region after it was resized to `height` x `width`, by the
/// nearest pixel, as PyTorch's mode "nearest" takes it.
Image resized_nearest(
    const Image& image,
    const Region& region,
    std::int64_t height,
    std::int64_t width,
    const Region& part);

/// Shape: [C, H, W] from [H, W, C].
std::vector<std::uint8_t> planes_of(const Image& image);

} // namespace lockstep::internal
