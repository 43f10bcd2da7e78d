// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/resize_uint8.h"

#include <algorithm>
#include <cmath>

#include "lockstep/data/internal/resize_passes.h"

namespace lockstep::internal {
namespace {

Region whole(const Image& image) {
  return {.height = image.shape.height, .width = image.shape.width};
}

// The outputs of the axes, which count from the region's corner. Each line is
// made narrow when it is read; then lines are summed.
Image resized_part(
    const Image& image,
    const Region& region,
    const ResizeAxis& rows,
    const ResizeAxis& columns) {
  const std::int64_t channels = image.shape.channels;
  Image out{
      .shape = {
          .channels = channels,
          .height = std::ssize(rows.outputs),
          .width = std::ssize(columns.outputs)}};
  out.pixels.resize(static_cast<std::size_t>(out.shape.numel()));
  const std::int64_t from = (columns.end - columns.begin) * channels;
  const std::int64_t to = out.shape.width * channels;
  std::vector<float> line(static_cast<std::size_t>(from + kLineSlack));
  std::vector<float> narrow(
      static_cast<std::size_t>((rows.end - rows.begin) * to + kLineSlack));
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    const std::int64_t place =
        (region.top + y) * image.shape.width + region.left + columns.begin;
    std::copy_n(image.pixels.data() + place * channels, from, line.data());
    float* const narrow_line = narrow.data() + (y - rows.begin) * to;
    resize_columns(columns, channels, line.data(), narrow_line);
  }
  std::vector<float> sum(static_cast<std::size_t>(to));
  std::uint8_t* pixels = out.pixels.data();
  for (const ResizeAxis::Output& row : rows.outputs) {
    const float* const first = narrow.data() + row.first_input * to;
    sum_lines(row.weights, first, to, to, sum.data());
    round_to_bytes(sum, pixels);
    pixels += to;
  }
  return out;
}

} // namespace

std::vector<std::uint8_t> planes_of(const Image& image) {
  const std::int64_t channels = image.shape.channels;
  const std::int64_t numel = image.shape.height * image.shape.width;
  std::vector<std::uint8_t> planes(image.pixels.size());
  std::uint8_t* out = planes.data();
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::uint8_t* in = image.pixels.data() + c;
    for (std::int64_t i = 0; i < numel; ++i) {
      *out++ = in[i * channels];
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

Image fitted_mask(const Image& mask, std::int64_t size) {
  const Fit fit = fit_of(mask.shape, size, size);
  return resized_nearest(mask, whole(mask), fit.height, fit.width, fit.middle);
}

Image fitted(const Image& image, std::int64_t height, std::int64_t width) {
  const Fit fit = fit_of(image.shape, height, width);
  return resized_part(
      image,
      whole(image),
      {image.shape.height, fit.height, fit.middle.top, height},
      {image.shape.width, fit.width, fit.middle.left, width});
}

std::vector<std::uint8_t>
fitted_planes(const Image& image, std::int64_t height, std::int64_t width) {
  return planes_of(fitted(image, height, width));
}

Image resized(
    const Image& image,
    const Region& region,
    std::int64_t height,
    std::int64_t width) {
  return resized_part(
      image,
      region,
      {region.height, height},
      {region.width, width});
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
