// SPDX-License-Identifier: BSD-3-Clause
//
// What augmentation does to the pixels of an image, without moving them: the
// functions of torchvision.transforms.v2.functional on uint8 tensors, CPU
// kernels (torchvision 0.29). Numbers are float32 where torchvision's are, and
// are cut to whole pixels where it cuts them.
//   find_operation("brightness")->apply(image, 1.5);
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lockstep/data/images.h"

namespace lockstep::internal {

/// An operation that takes one number, or none.
struct ImageOperation {
  std::string_view name = {};
  void (*apply)(Image& image, double value) = nullptr;
};

/// brightness, contrast, saturation, sharpness: a factor, 1 changes nothing;
/// hue: turns of the colour circle, -0.5 to 0.5; posterize: bits that stay;
/// solarize: pixels from here on are inverted; autocontrast, equalize, invert,
/// grayscale: no number. Saturation, hue and grayscale leave images of one
/// channel alone.
std::span<const ImageOperation> image_operations();

/// Null if there is none of that name.
const ImageOperation* find_operation(std::string_view name);

/// Colours (image_colors.cpp).
void change_brightness(Image& image, double factor);
void change_contrast(Image& image, double factor);
void change_saturation(Image& image, double factor);
void change_hue(Image& image, double turns);
void to_grayscale(Image& image, double unused);
/// Pixels one by one, or by the counts of a channel (image_tones.cpp).
void posterize(Image& image, double bits);
void solarize(Image& image, double threshold);
void autocontrast(Image& image, double unused);
void equalize(Image& image, double unused);
void invert(Image& image, double unused);
/// By neighbours (image_filters.cpp).
void change_sharpness(Image& image, double factor);

/// Gaussian of `kernel` x `kernel` pixels, odd. The image goes on as a mirror
/// of itself at its edges, as often as it takes; torchvision refuses images
/// that are smaller than half a kernel.
void gaussian_blur(Image& image, std::int64_t kernel, double sigma);

/// `table` has 256 values for each channel, or for all of them.
void map_pixels(Image& image, std::span<const std::uint8_t> table);

} // namespace lockstep::internal
