// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/image_resize.h"

#include <algorithm>
#include <cmath>

namespace lockstep::internal {
namespace {

Region whole(const Image& image) {
  return {.height = image.shape.height, .width = image.shape.width};
}

// What the axes need of the region. Shape: [C, H, W].
std::vector<float> needed_planes(
    const Image& image,
    const Region& region,
    const ResizeAxis& rows,
    const ResizeAxis& columns) {
  const std::int64_t channels = image.shape.channels;
  const std::int64_t height = rows.end - rows.begin;
  const std::int64_t width = columns.end - columns.begin;
  std::vector<float> planes(
      static_cast<std::size_t>(channels * height * width));
  float* out = planes.data();
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t row = region.top + rows.begin + y;
      const std::int64_t column = region.left + columns.begin;
      const std::uint8_t* in = image.pixels.data() +
                               (row * image.shape.width + column) * channels +
                               c;
      for (std::int64_t x = 0; x < width; ++x, in += channels) {
        *out++ = static_cast<float>(*in);
      }
    }
  }
  return planes;
}

Image interleaved(
    const std::vector<std::uint8_t>& planes,
    const ImageShape& shape) {
  Image image{.shape = shape};
  image.pixels.resize(planes.size());
  const std::uint8_t* in = planes.data();
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    for (auto i = static_cast<std::size_t>(c); i < planes.size();
         i += static_cast<std::size_t>(shape.channels)) {
      image.pixels[i] = *in++;
    }
  }
  return image;
}

} // namespace

std::vector<std::uint8_t> planes_of(const Image& image) {
  std::vector<std::uint8_t> planes;
  planes.reserve(image.pixels.size());
  for (std::int64_t c = 0; c < image.shape.channels; ++c) {
    for (auto i = static_cast<std::size_t>(c); i < image.pixels.size();
         i += static_cast<std::size_t>(image.shape.channels)) {
      planes.push_back(image.pixels[i]);
    }
  }
  return planes;
}

Fit fit_of(const ImageShape& from, std::int64_t height, std::int64_t width) {
  // Which side decides: of a square the shorter one, as torchvision's.
  const bool by_height = from.height * width <= from.width * height;
  Fit fit{
      .height = by_height ? height : width * from.height / from.width,
      .width = by_height ? height * from.width / from.height : width};
  const auto first = [](std::int64_t all, std::int64_t kept) {
    return half_to_even(static_cast<double>(all - kept) / 2);
  };
  fit.middle = {
      .top = first(fit.height, height),
      .left = first(fit.width, width),
      .height = height,
      .width = width};
  return fit;
}

std::vector<std::uint8_t> resized_planes(
    const Image& image,
    const Region& region,
    const ResizeAxis& rows,
    const ResizeAxis& columns) {
  const std::vector<float> planes = needed_planes(image, region, rows, columns);
  const Resize resize(image.shape.channels, rows, columns);
  std::vector<float> resized(static_cast<std::size_t>(resize.to().numel()));
  resize.apply(planes.data(), resized.data());
  std::vector<std::uint8_t> out(resized.size());
  std::ranges::transform(resized, out.begin(), [](float value) {
    return static_cast<std::uint8_t>(
        std::clamp(std::nearbyint(value), 0.0F, 255.0F));
  });
  return out;
}

std::vector<std::uint8_t>
fitted_planes(const Image& image, std::int64_t height, std::int64_t width) {
  const Fit fit = fit_of(image.shape, height, width);
  return resized_planes(
      image,
      whole(image),
      {image.shape.height, fit.height, fit.middle.top, height},
      {image.shape.width, fit.width, fit.middle.left, width});
}

Image fitted_mask(const Image& mask, std::int64_t size) {
  const Fit fit = fit_of(mask.shape, size, size);
  return resized_nearest(mask, whole(mask), fit.height, fit.width, fit.middle);
}

Image fitted(const Image& image, std::int64_t height, std::int64_t width) {
  return interleaved(
      fitted_planes(image, height, width),
      {.channels = image.shape.channels, .height = height, .width = width});
}

Image resized(
    const Image& image,
    const Region& region,
    std::int64_t height,
    std::int64_t width) {
  return interleaved(
      resized_planes(
          image,
          region,
          {region.height, height},
          {region.width, width}),
      {.channels = image.shape.channels, .height = height, .width = width});
}

Image resized_nearest(
    const Image& image,
    const Region& region,
    std::int64_t height,
    std::int64_t width,
    const Region& part) {
  const auto source =
      [](std::int64_t place, std::int64_t from, std::int64_t to) {
        const float scale = static_cast<float>(from) / static_cast<float>(to);
        const float at = std::floor(static_cast<float>(place) * scale);
        return std::min(static_cast<std::int64_t>(at), from - 1);
      };
  Image out{
      .shape = {
          .channels = image.shape.channels,
          .height = part.height,
          .width = part.width}};
  out.pixels.resize(static_cast<std::size_t>(out.shape.numel()));
  std::uint8_t* to = out.pixels.data();
  for (std::int64_t y = 0; y < part.height; ++y) {
    const std::int64_t row =
        region.top + source(part.top + y, region.height, height);
    for (std::int64_t x = 0; x < part.width; ++x) {
      const std::int64_t column =
          region.left + source(part.left + x, region.width, width);
      to = std::copy_n(
          image.pixels.data() +
              (row * image.shape.width + column) * image.shape.channels,
          image.shape.channels,
          to);
    }
  }
  return out;
}

} // namespace lockstep::internal
