// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/fit_image.h"

#include <algorithm>
#include <cmath>

#include "lockstep/data/internal/resize.h"

namespace lockstep::internal {
namespace {

// Python's `round`.
std::int64_t half_to_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

// The middle of `side` pixels, resized to `resized`, where `size` are kept.
ResizeAxis middle(std::int64_t side, std::int64_t resized, std::int64_t size) {
  const auto first = half_to_even(static_cast<double>(resized - size) / 2);
  return {side, resized, first, size};
}

// The part of the image that the axes need. Shape: [C, H, W].
std::vector<float> planes_of(
    const Image& image,
    const ResizeAxis& rows,
    const ResizeAxis& columns) {
  const std::int64_t channels = image.shape.channels;
  std::vector<float> planes;
  planes.reserve(static_cast<std::size_t>(
      channels * (rows.end - rows.begin) * (columns.end - columns.begin)));
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t y = rows.begin; y < rows.end; ++y) {
      for (std::int64_t x = columns.begin; x < columns.end; ++x) {
        planes.push_back(image.pixels[static_cast<std::size_t>(
            (y * image.shape.width + x) * channels + c)]);
      }
    }
  }
  return planes;
}

// Where the pixels of the middle are in a side that is not resized, as
// at::upsample_nearest finds them: in float.
std::vector<std::int64_t>
nearest_places(std::int64_t side, std::int64_t resized, std::int64_t size) {
  const std::int64_t first =
      half_to_even(static_cast<double>(resized - size) / 2);
  const float scale = static_cast<float>(side) / static_cast<float>(resized);
  std::vector<std::int64_t> places;
  places.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = first; i < first + size; ++i) {
    const float place = std::floor(static_cast<float>(i) * scale);
    places.push_back(std::min(static_cast<std::int64_t>(place), side - 1));
  }
  return places;
}

} // namespace

std::vector<std::uint8_t> fit_image(const Image& image, std::int64_t size) {
  const ImageShape& from = image.shape;
  const std::int64_t shorter = std::min(from.height, from.width);
  const auto axis = [&](std::int64_t side) {
    return middle(side, size * side / shorter, size);
  };
  const ResizeAxis rows = axis(from.height);
  const ResizeAxis columns = axis(from.width);
  const std::vector<float> planes = planes_of(image, rows, columns);
  const Resize resize(from.channels, rows, columns);
  std::vector<float> resized(static_cast<std::size_t>(resize.to().numel()));
  resize.apply(planes.data(), resized.data());
  std::vector<std::uint8_t> out(resized.size());
  std::ranges::transform(resized, out.begin(), [](float value) {
    return static_cast<std::uint8_t>(
        std::clamp(std::nearbyint(value), 0.0F, 255.0F));
  });
  return out;
}

std::vector<std::uint8_t> fit_mask(const Image& mask, std::int64_t size) {
  const ImageShape& from = mask.shape;
  const std::int64_t shorter = std::min(from.height, from.width);
  const auto places = [&](std::int64_t side) {
    return nearest_places(side, size * side / shorter, size);
  };
  const std::vector<std::int64_t> columns = places(from.width);
  std::vector<std::uint8_t> out;
  out.reserve(static_cast<std::size_t>(size * size));
  for (const std::int64_t row : places(from.height)) {
    for (const std::int64_t column : columns) {
      out.push_back(
          mask.pixels[static_cast<std::size_t>(row * from.width + column)]);
    }
  }
  return out;
}

} // namespace lockstep::internal
