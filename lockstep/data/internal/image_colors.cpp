// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/data/internal/image_operations.h"

namespace lockstep::internal {
namespace {

constexpr std::int64_t kRgb = 3;

// LibTorch's `a.add(b, alpha)` rounds once. In double the product is exact and
// the sum nearly always, which rounds to the same float.
float add_scaled(float a, float b, float alpha) {
  return static_cast<float>(
      static_cast<double>(a) + static_cast<double>(b) * alpha);
}

std::uint8_t cut(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

// Red, green and blue by what the eye sees of them: torchvision's numbers.
float luma(const std::uint8_t* rgb) {
  float sum = static_cast<float>(rgb[0]) * 0.2989F;
  sum = add_scaled(sum, rgb[1], 0.587F);
  return std::floor(add_scaled(sum, rgb[2], 0.114F));
}

// `factor` of a pixel, and what is left to 1 of another.
class Blend {
 public:
  explicit Blend(double factor)
      : factor_(static_cast<float>(factor)),
        rest_(static_cast<float>(1.0 - factor)) {}

  [[nodiscard]] std::uint8_t of(std::uint8_t pixel, float other) const {
    return cut(add_scaled(static_cast<float>(pixel) * factor_, other, rest_));
  }

 private:
  float factor_;
  float rest_;
};

struct Hsv {
  float hue = 0; // turns, 0 to 1
  float saturation = 0;
  float value = 0;
};

Hsv to_hsv(const std::array<float, kRgb>& rgb) {
  const auto [red, green, blue] = rgb;
  const auto [low, high] = std::ranges::minmax(rgb);
  const float range = high - low;
  const float divisor = range == 0 ? 1.0F : range;
  const float r = (high - red) / divisor;
  const float g = (high - green) / divisor;
  const float b = (high - blue) / divisor;
  const float sector = high == red     ? b - g
                       : high == green ? (r + 2.0F) - b
                                       : (g + 4.0F) - r;
  constexpr auto kSixth = static_cast<float>(1.0 / 6.0);
  return {
      .hue = std::fmod(sector * kSixth + 1.0F, 1.0F),
      .saturation = range / (range == 0 ? 1.0F : high),
      .value = high};
}

std::array<float, kRgb> to_rgb(const Hsv& hsv) {
  const float six = hsv.hue * 6.0F;
  const float floor = std::floor(six);
  const float part = hsv.saturation * (six - floor);
  const float white = 1.0F - hsv.saturation;
  const auto of_value = [&](float share) {
    return std::clamp(share * hsv.value, 0.0F, 1.0F);
  };
  const float falling = of_value(1.0F - part);
  const float rising = of_value(part + white);
  const float lowest = of_value(white);
  switch (static_cast<int>(floor) % 6) {
    case 0:
      return {hsv.value, rising, lowest};
    case 1:
      return {falling, hsv.value, lowest};
    case 2:
      return {lowest, hsv.value, rising};
    case 3:
      return {lowest, falling, hsv.value};
    case 4:
      return {rising, lowest, hsv.value};
    default:
      return {hsv.value, lowest, falling};
  }
}

// Python's `%` of a number from -0.5 to 1.5.
float wrapped(float turns) {
  const float rest = std::fmod(turns, 1.0F);
  return rest < 0 ? rest + 1.0F : rest;
}

void turn_hue(std::uint8_t* rgb, float turns) {
  constexpr auto kScale = static_cast<float>(1.0 / 255.0);
  Hsv hsv = to_hsv(
      {static_cast<float>(rgb[0]) * kScale,
       static_cast<float>(rgb[1]) * kScale,
       static_cast<float>(rgb[2]) * kScale});
  hsv.hue = wrapped(hsv.hue + turns);
  constexpr auto kLevels = static_cast<float>(256.0 - 1e-3);
  for (const float part : to_rgb(hsv)) {
    *rgb++ = static_cast<std::uint8_t>(part * kLevels);
  }
}

// Each pixel of an image in colours.
template <class Function>
void for_each_rgb(Image& image, const Function& function) {
  if (image.shape.channels != kRgb) {
    return;
  }
  for (std::size_t i = 0; i < image.pixels.size(); i += kRgb) {
    function(&image.pixels[i]);
  }
}

// Of grey levels. Their sum is exact, which LibTorch's float sum is up to
// 65,793 white pixels.
float mean_luma(Image& image) {
  double sum = 0;
  if (image.shape.channels == kRgb) {
    for_each_rgb(image, [&](const std::uint8_t* rgb) { sum += luma(rgb); });
  } else {
    for (const std::uint8_t pixel : image.pixels) {
      sum += pixel;
    }
  }
  const auto pixels =
      static_cast<float>(image.shape.height * image.shape.width);
  return static_cast<float>(sum) / pixels;
}

// All pixels towards one level.
void blend_with(Image& image, double factor, float level) {
  const Blend blend(factor);
  std::array<std::uint8_t, 256> table{};
  for (std::size_t pixel = 0; pixel < table.size(); ++pixel) {
    table.at(pixel) = blend.of(static_cast<std::uint8_t>(pixel), level);
  }
  map_pixels(image, table);
}

} // namespace

void change_brightness(Image& image, double factor) {
  blend_with(image, factor, 0.0F);
}

void change_contrast(Image& image, double factor) {
  blend_with(image, factor, mean_luma(image));
}

void change_saturation(Image& image, double factor) {
  const Blend blend(factor);
  for_each_rgb(image, [&](std::uint8_t* rgb) {
    const float grey = luma(rgb);
    for (std::int64_t c = 0; c < kRgb; ++c) {
      rgb[c] = blend.of(rgb[c], grey);
    }
  });
}

void change_hue(Image& image, double turns) {
  const auto by = static_cast<float>(turns);
  for_each_rgb(image, [&](std::uint8_t* rgb) { turn_hue(rgb, by); });
}

void to_grayscale(Image& image, double /*unused*/) {
  for_each_rgb(image, [](std::uint8_t* rgb) {
    std::fill_n(rgb, kRgb, static_cast<std::uint8_t>(luma(rgb)));
  });
}

} // namespace lockstep::internal
