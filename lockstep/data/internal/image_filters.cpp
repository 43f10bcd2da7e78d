// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "lockstep/data/internal/image_operations.h"

namespace lockstep::internal {
namespace {

// The pixel that is seen at `place` where a line of `size` pixels is mirrored
// at its first and last one.
std::int64_t mirrored(std::int64_t place, std::int64_t size) {
  if (size == 1) {
    return 0;
  }
  const std::int64_t period = 2 * (size - 1);
  const std::int64_t rest = ((place % period) + period) % period;
  return std::min(rest, period - rest);
}

std::vector<float> gaussian(std::int64_t kernel, double sigma) {
  const double end =
      static_cast<double>(kernel - 1) / (2.0 * std::numbers::sqrt2);
  std::vector<double> weights;
  weights.reserve(static_cast<std::size_t>(kernel));
  double total = 0;
  for (std::int64_t i = 0; i < kernel; ++i) {
    const double share =
        kernel == 1 ? 0.5
                    : static_cast<double>(i) / static_cast<double>(kernel - 1);
    const double x = (2.0 * share - 1.0) * end / sigma;
    weights.push_back(std::exp(-x * x));
    total += weights.back();
  }
  std::vector<float> shares;
  shares.reserve(weights.size());
  for (const double weight : weights) {
    shares.push_back(static_cast<float>(weight / total));
  }
  return shares;
}

// One side of the image: `count` places that lie `stride` numbers apart.
struct Side {
  std::int64_t count = 0;
  std::int64_t stride = 0;
};

// Weighted sums along `side`, for every place of the image, which has `numel`
// numbers.
template <class From>
std::vector<float> along(
    const std::vector<From>& from,
    const Side& side,
    const std::vector<float>& weights) {
  std::vector<float> out(from.size(), 0.0F);
  const auto radius = static_cast<std::int64_t>(weights.size()) / 2;
  const std::int64_t line = side.count * side.stride;
  for (std::int64_t start = 0; start < std::ssize(from); start += line) {
    for (std::int64_t place = 0; place < side.count; ++place) {
      float* const sums = out.data() + start + place * side.stride;
      for (std::int64_t k = 0; k < std::ssize(weights); ++k) {
        const From* const seen =
            from.data() + start +
            mirrored(place + k - radius, side.count) * side.stride;
        const float weight = weights[static_cast<std::size_t>(k)];
        for (std::int64_t i = 0; i < side.stride; ++i) {
          sums[i] += weight * static_cast<float>(seen[i]);
        }
      }
    }
  }
  return out;
}

} // namespace

void gaussian_blur(Image& image, std::int64_t kernel, double sigma) {
  const std::vector<float> weights = gaussian(kernel, sigma);
  const ImageShape& shape = image.shape;
  const auto narrow = along(
      image.pixels,
      {.count = shape.width, .stride = shape.channels},
      weights);
  const auto sums = along(
      narrow,
      {.count = shape.height, .stride = shape.channels * shape.width},
      weights);
  std::ranges::transform(sums, image.pixels.begin(), [](float value) {
    return static_cast<std::uint8_t>(
        std::clamp(std::nearbyint(value), 0.0F, 255.0F));
  });
}

// Towards the mean of a pixel, five times, and its eight neighbours, or away
// from it. The outermost pixels stay. A mean of 13 whole numbers is never half
// way between two levels.
void change_sharpness(Image& image, double factor) {
  const ImageShape& shape = image.shape;
  if (shape.height <= 2 || shape.width <= 2) {
    return;
  }
  const std::vector<std::uint8_t> from = image.pixels;
  const std::int64_t row = shape.width * shape.channels;
  const auto rest = static_cast<float>(1.0 - factor);
  for (std::int64_t y = 1; y + 1 < shape.height; ++y) {
    for (std::int64_t x = shape.channels; x + shape.channels < row; ++x) {
      const std::uint8_t* const pixel = from.data() + y * row + x;
      int sum = 4 * *pixel;
      for (const std::int64_t near : {-row, std::int64_t{0}, row}) {
        sum += pixel[near - shape.channels] + pixel[near] +
               pixel[near + shape.channels];
      }
      const int mean = (sum + 6) / 13;
      const double value = *pixel + static_cast<double>(mean - *pixel) * rest;
      image.pixels[static_cast<std::size_t>(y * row + x)] =
          static_cast<std::uint8_t>(
              std::clamp(static_cast<float>(value), 0.0F, 255.0F));
    }
  }
}

} // namespace lockstep::internal
