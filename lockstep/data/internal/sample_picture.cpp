// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/sample_picture.h"

#include <algorithm>
#include <cmath>

#include "lockstep/data/internal/class_color.h"

namespace lockstep::internal {
namespace {

constexpr std::size_t kColors = 3;

Image empty_picture(std::int64_t height, std::int64_t width) {
  Image image{.shape = {.channels = kColors, .height = height, .width = width}};
  image.pixels.resize(static_cast<std::size_t>(image.shape.numel()));
  return image;
}

// From numbers back to pixels.
class Unscaler {
 public:
  Unscaler(const PixelFormat& format, std::span<const float> numbers)
      : format_(format) {
    if (!format.is_known() && !numbers.empty()) {
      const auto [low, high] = std::ranges::minmax(numbers);
      low_ = low;
      range_ = high > low ? high - low : 1.0F;
    }
  }

  [[nodiscard]] std::uint8_t pixel(float number, std::size_t channel) const {
    constexpr float kWhite = 255;
    const float share = format_.is_known() ? number * format_.std[channel] +
                                                 format_.mean[channel]
                                           : (number - low_) / range_;
    return std::isnan(share) ? 0
                             : static_cast<std::uint8_t>(std::lround(
                                   std::clamp(share, 0.0F, 1.0F) * kWhite));
  }

 private:
  const PixelFormat& format_;
  float low_ = 0;
  float range_ = 1;
};

} // namespace

Image sample_picture(
    std::span<const float> numbers,
    const ImageShape& shape,
    const PixelFormat& format) {
  const Unscaler unscaler(format, numbers);
  const auto plane = static_cast<std::size_t>(shape.height * shape.width);
  Image image = empty_picture(shape.height, shape.width);
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < kColors; ++c) {
      const std::size_t from =
          shape.channels >= static_cast<std::int64_t>(kColors) ? c : 0;
      image.pixels[kColors * i + c] =
          unscaler.pixel(numbers[from * plane + i], from);
    }
  }
  return image;
}

Image mask_picture(
    std::span<const std::int64_t> classes,
    std::int64_t height,
    std::int64_t width) {
  Image image = empty_picture(height, width);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::ranges::copy(
        class_color(classes[i]),
        image.pixels.begin() + static_cast<std::ptrdiff_t>(kColors * i));
  }
  return image;
}

Image side_by_side(std::span<const Image> pictures) {
  std::int64_t width = 0;
  for (const Image& picture : pictures) {
    width += picture.shape.width;
  }
  const std::int64_t height =
      pictures.empty() ? 0 : pictures.front().shape.height;
  Image all = empty_picture(height, width);
  auto out = all.pixels.begin();
  for (std::int64_t y = 0; y < height; ++y) {
    for (const Image& picture : pictures) {
      const auto row =
          static_cast<std::ptrdiff_t>(kColors) * picture.shape.width;
      const auto from = picture.pixels.begin() + y * row;
      out = std::copy(from, from + row, out);
    }
  }
  return all;
}

namespace {

// The mean of a colour in a square of `side` pixels, cut at the edges.
std::uint8_t mean_of(
    const Image& image,
    std::int64_t top,
    std::int64_t left,
    std::int64_t side,
    std::size_t color) {
  const std::int64_t bottom = std::min(top + side, image.shape.height);
  const std::int64_t right = std::min(left + side, image.shape.width);
  std::int64_t sum = 0;
  for (std::int64_t y = top; y < bottom; ++y) {
    for (std::int64_t x = left; x < right; ++x) {
      const auto pixel = static_cast<std::size_t>(y * image.shape.width + x);
      sum += image.pixels[pixel * kColors + color];
    }
  }
  const std::int64_t count = (bottom - top) * (right - left);
  return static_cast<std::uint8_t>((sum + count / 2) / count);
}

} // namespace

Image thumbnail(const Image& image, std::int64_t longest) {
  const std::int64_t longer = std::max(image.shape.height, image.shape.width);
  const std::int64_t factor = (longer + longest - 1) / longest;
  if (factor <= 1) {
    return image;
  }
  Image small = empty_picture(
      std::max<std::int64_t>(1, image.shape.height / factor),
      std::max<std::int64_t>(1, image.shape.width / factor));
  std::uint8_t* out = small.pixels.data();
  for (std::int64_t y = 0; y < small.shape.height; ++y) {
    for (std::int64_t x = 0; x < small.shape.width; ++x) {
      for (std::size_t color = 0; color < kColors; ++color) {
        *out++ = mean_of(image, y * factor, x * factor, factor, color);
      }
    }
  }
  return small;
}

} // namespace lockstep::internal
