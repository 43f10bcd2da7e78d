// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/data/internal/image_geometry.h"

namespace lockstep::internal {
namespace {

double radians(double degrees) {
  return degrees * std::numbers::pi / 180.0;
}

// Units: pixels, where the first one's middle is 0.
struct Place {
  double x = 0;
  double y = 0;
};

class Sampler {
 public:
  Sampler(const Image& image, std::uint8_t fill) : image_(image), fill_(fill) {}

  void nearest(const Place& place, std::uint8_t* out) const {
    // Half to even, as LibTorch's `nearbyint`.
    const double x = std::nearbyint(place.x);
    const double y = std::nearbyint(place.y);
    const std::uint8_t* const pixel = at(x, y);
    if (pixel == nullptr) {
      std::fill_n(out, image_.shape.channels, fill_);
    } else {
      std::copy_n(pixel, image_.shape.channels, out);
    }
  }

  // Pixels outside count as zeros, and the sum is blended with `fill` by the
  // share of pixels outside: torchvision does both.
  void bilinear(const Place& place, std::uint8_t* out) const {
    const double left = std::floor(place.x);
    const double top = std::floor(place.y);
    const auto right_share = static_cast<float>(place.x - left);
    const auto lower_share = static_cast<float>(place.y - top);
    const std::array<float, 4> weights{
        (1.0F - right_share) * (1.0F - lower_share),
        right_share * (1.0F - lower_share),
        (1.0F - right_share) * lower_share,
        right_share * lower_share};
    const std::array<const std::uint8_t*, 4> pixels{
        at(left, top),
        at(left + 1, top),
        at(left, top + 1),
        at(left + 1, top + 1)};
    float inside = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      inside += pixels.at(i) == nullptr ? 0.0F : weights.at(i);
    }
    for (std::int64_t c = 0; c < image_.shape.channels; ++c) {
      float sum = 0;
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        sum += pixels.at(i) == nullptr
                   ? 0.0F
                   : weights.at(i) * static_cast<float>(pixels.at(i)[c]);
      }
      const auto fill = static_cast<float>(fill_);
      out[c] = static_cast<std::uint8_t>(std::clamp(
          std::nearbyint((sum - fill) * inside + fill),
          0.0F,
          255.0F));
    }
  }

 private:
  // Null outside of the image.
  [[nodiscard]] const std::uint8_t* at(double x, double y) const {
    const ImageShape& shape = image_.shape;
    if (!(x >= 0 && y >= 0 && x < static_cast<double>(shape.width) &&
          y < static_cast<double>(shape.height))) {
      return nullptr;
    }
    const auto row = static_cast<std::int64_t>(y);
    const auto column = static_cast<std::int64_t>(x);
    return image_.pixels.data() + (row * shape.width + column) * shape.channels;
  }

  const Image& image_;
  std::uint8_t fill_;
};

} // namespace

std::array<double, 6> inverse_matrix(
    const AffineMap& map,
    const ImageShape& shape) {
  const double angle = radians(map.angle);
  const double shear_x = radians(map.shear_x);
  const double shear_y = radians(map.shear_y);
  // The map's matrix without its scale is [a b; c d], of determinant 1.
  const double a = std::cos(angle - shear_y) / std::cos(shear_y);
  const double b = -a * std::tan(shear_x) - std::sin(angle);
  const double c = std::sin(angle - shear_y) / std::cos(shear_y);
  const double d = -c * std::tan(shear_x) + std::cos(angle);
  std::array<double, 6>
      m{d / map.scale, -b / map.scale, 0, -c / map.scale, a / map.scale, 0};
  const double x =
      map.around_corner ? -0.5 * static_cast<double>(shape.width) : 0.0;
  const double y =
      map.around_corner ? -0.5 * static_cast<double>(shape.height) : 0.0;
  m[2] = m[0] * (-x - map.right) + m[1] * (-y - map.down) + x;
  m[5] = m[3] * (-x - map.right) + m[4] * (-y - map.down) + y;
  return m;
}

Image moved(const Image& image, const AffineMap& map) {
  const std::array<double, 6> m = inverse_matrix(map, image.shape);
  const Sampler sampler(image, map.fill);
  Image out{.shape = image.shape};
  out.pixels.resize(image.pixels.size());
  const double middle_x = 0.5 * static_cast<double>(image.shape.width - 1);
  const double middle_y = 0.5 * static_cast<double>(image.shape.height - 1);
  std::uint8_t* to = out.pixels.data();
  for (std::int64_t row = 0; row < image.shape.height; ++row) {
    const double y = static_cast<double>(row) - middle_y;
    for (std::int64_t column = 0; column < image.shape.width;
         ++column, to += image.shape.channels) {
      const double x = static_cast<double>(column) - middle_x;
      const Place place{
          m[0] * x + m[1] * y + m[2] + middle_x,
          m[3] * x + m[4] * y + m[5] + middle_y};
      if (map.is_bilinear) {
        sampler.bilinear(place, to);
      } else {
        sampler.nearest(place, to);
      }
    }
  }
  return out;
}

} // namespace lockstep::internal
