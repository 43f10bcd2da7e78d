// SPDX-License-Identifier: BSD-3-Clause
//
// Images of any size in one size, with their masks in step.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/image_file.h"

namespace lockstep::internal {

/// The image with its shorter side resized to `size` (bilinear, antialiased),
/// and the middle of it, as torchvision's `Resize` and `CenterCrop` of tensors:
/// what is cut off is not computed. Shape: [C, size, size].
std::vector<std::uint8_t> fit_image(const Image& image, std::int64_t size);

/// The same part of a mask of one channel, each pixel the nearest one, as
/// torchvision's `Resize` with NEAREST. Shape: [size, size].
std::vector<std::uint8_t> fit_mask(const Image& mask, std::int64_t size);

} // namespace lockstep::internal
