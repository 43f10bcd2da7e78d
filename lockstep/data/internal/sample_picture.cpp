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

// NOLINTNEXTLINE(readability-function-size)
Image thumbnail(const Image& image, std::int64_t longest) {
  const std::int64_t longer = std::max(image.shape.height, image.shape.width);
  const std::int64_t factor = (longer + longest - 1) / longest;
  if (factor <= 1) {
    return image;
  }
  Image small = empty_picture(
      std::max<std::int64_t>(1, image.shape.height / factor),
      std::max<std::int64_t>(1, image.shape.width / factor));
  const auto at = [&](const Image& of, std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>(y * of.shape.width + x) * kColors;
  };
  for (std::int64_t y = 0; y < small.shape.height; ++y) {
    for (std::int64_t x = 0; x < small.shape.width; ++x) {
      for (std::size_t c = 0; c < kColors; ++c) {
        int sum = 0;
        int count = 0;
        for (std::int64_t dy = 0; dy < factor; ++dy) {
          for (std::int64_t dx = 0; dx < factor; ++dx) {
            const std::int64_t row = y * factor + dy;
            const std::int64_t column = x * factor + dx;
            if (row < image.shape.height && column < image.shape.width) {
              sum += image.pixels[at(image, row, column) + c];
              ++count;
            }
          }
        }
        small.pixels[at(small, y, x) + c] =
            static_cast<std::uint8_t>((sum + count / 2) / count);
      }
    }
  }
  return small;
}

} // namespace lockstep::internal
