// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/image_geometry.h"

#include <algorithm>

namespace lockstep::internal {
namespace {

// Calls `map` for each place that is marked; boxes become the smallest around
// what their corners become, inside of the image.
template <class Map>
void move_marks(AnnotatedImage& sample, const Map& map) {
  for (Point& point : sample.points) {
    point = map(point);
  }
  const auto height = static_cast<double>(sample.image.shape.height);
  const auto width = static_cast<double>(sample.image.shape.width);
  for (Box& box : sample.boxes) {
    const std::array corners{
        map(Point{box.left, box.top}),
        map(Point{box.right, box.top}),
        map(Point{box.right, box.bottom}),
        map(Point{box.left, box.bottom})};
    const auto [left, right] = std::ranges::minmax(corners, {}, &Point::x);
    const auto [top, bottom] = std::ranges::minmax(corners, {}, &Point::y);
    box = {
        .left = std::clamp(left.x, 0.0, width),
        .top = std::clamp(top.y, 0.0, height),
        .right = std::clamp(right.x, 0.0, width),
        .bottom = std::clamp(bottom.y, 0.0, height)};
  }
}

void mirror_rows(Image& image) {
  const std::int64_t channels = image.shape.channels;
  const std::int64_t row = image.shape.width * channels;
  for (std::int64_t y = 0; y < image.shape.height; ++y) {
    std::uint8_t* const first = image.pixels.data() + y * row;
    for (std::int64_t left = 0, right = row - channels; left < right;
         left += channels, right -= channels) {
      std::swap_ranges(first + left, first + left + channels, first + right);
    }
  }
}

void reverse_rows(Image& image) {
  const std::int64_t row = image.shape.width * image.shape.channels;
  std::uint8_t* const first = image.pixels.data();
  for (std::int64_t top = 0, bottom = image.shape.height - 1; top < bottom;
       ++top, --bottom) {
    std::swap_ranges(
        first + top * row,
        first + (top + 1) * row,
        first + bottom * row);
  }
}

// Of a resized image: `part` of what `region` became.
struct Scaling {
  Region region = {};
  double height = 0;
  double width = 0;
  Region part = {};

  Point operator()(const Point& point) const {
    const double x = (point.x - static_cast<double>(region.left)) * width /
                     static_cast<double>(region.width);
    const double y = (point.y - static_cast<double>(region.top)) * height /
                     static_cast<double>(region.height);
    return {
        x - static_cast<double>(part.left),
        y - static_cast<double>(part.top)};
  }
};

} // namespace

Image cropped(const Image& image, const Region& region, std::uint8_t fill) {
  const std::int64_t channels = image.shape.channels;
  Image out{
      .shape = {
          .channels = channels,
          .height = region.height,
          .width = region.width}};
  out.pixels.assign(static_cast<std::size_t>(out.shape.numel()), fill);
  const std::int64_t top = std::max<std::int64_t>(region.top, 0);
  const std::int64_t bottom =
      std::min(region.top + region.height, image.shape.height);
  const std::int64_t left = std::max<std::int64_t>(region.left, 0);
  const std::int64_t right =
      std::min(region.left + region.width, image.shape.width);
  for (std::int64_t y = top; y < bottom && left < right; ++y) {
    std::copy_n(
        image.pixels.data() + (y * image.shape.width + left) * channels,
        (right - left) * channels,
        out.pixels.data() +
            ((y - region.top) * region.width + left - region.left) * channels);
  }
  return out;
}

void crop(AnnotatedImage& sample, const Region& region, std::uint8_t fill) {
  sample.image = cropped(sample.image, region, fill);
  if (sample.mask) {
    sample.mask = cropped(*sample.mask, region, kIgnoredPixel);
  }
  move_marks(sample, [&](const Point& point) {
    return Point{
        point.x - static_cast<double>(region.left),
        point.y - static_cast<double>(region.top)};
  });
}

void flip_horizontally(AnnotatedImage& sample) {
  mirror_rows(sample.image);
  if (sample.mask) {
    mirror_rows(*sample.mask);
  }
  const auto width = static_cast<double>(sample.image.shape.width);
  move_marks(sample, [&](const Point& point) {
    return Point{width - point.x, point.y};
  });
}

void flip_vertically(AnnotatedImage& sample) {
  reverse_rows(sample.image);
  if (sample.mask) {
    reverse_rows(*sample.mask);
  }
  const auto height = static_cast<double>(sample.image.shape.height);
  move_marks(sample, [&](const Point& point) {
    return Point{point.x, height - point.y};
  });
}

void crop_and_resize(
    AnnotatedImage& sample,
    const Region& region,
    std::int64_t height,
    std::int64_t width) {
  const Region all{.height = height, .width = width};
  sample.image = resized(sample.image, region, height, width);
  if (sample.mask) {
    sample.mask = resized_nearest(*sample.mask, region, height, width, all);
  }
  move_marks(
      sample,
      Scaling{
          .region = region,
          .height = static_cast<double>(height),
          .width = static_cast<double>(width),
          .part = all});
}

void fit(AnnotatedImage& sample, std::int64_t height, std::int64_t width) {
  const Fit whole = fit_of(sample.image.shape, height, width);
  const Region all{
      .height = sample.image.shape.height,
      .width = sample.image.shape.width};
  sample.image = fitted(sample.image, height, width);
  if (sample.mask) {
    sample.mask = resized_nearest(
        *sample.mask,
        all,
        whole.height,
        whole.width,
        whole.middle);
  }
  move_marks(
      sample,
      Scaling{
          .region = all,
          .height = static_cast<double>(whole.height),
          .width = static_cast<double>(whole.width),
          .part = whole.middle});
}

void move(AnnotatedImage& sample, const AffineMap& map) {
  const ImageShape shape = sample.image.shape;
  sample.image = moved(sample.image, map);
  if (sample.mask) {
    AffineMap nearest = map;
    nearest.is_bilinear = false;
    nearest.fill = kIgnoredPixel;
    sample.mask = moved(*sample.mask, nearest);
  }
  const std::array<double, 6> m = inverse_matrix(map, shape);
  const double determinant = m[0] * m[4] - m[1] * m[3];
  const double middle_x = static_cast<double>(shape.width) / 2;
  const double middle_y = static_cast<double>(shape.height) / 2;
  move_marks(sample, [&](const Point& point) {
    const double x = point.x - middle_x - m[2];
    const double y = point.y - middle_y - m[5];
    return Point{
        (m[4] * x - m[1] * y) / determinant + middle_x,
        (m[0] * y - m[3] * x) / determinant + middle_y};
  });
}

void erase(Image& image, const Region& region, std::uint8_t value) {
  const std::int64_t channels = image.shape.channels;
  for (std::int64_t y = 0; y < region.height; ++y) {
    std::fill_n(
        image.pixels.data() +
            ((region.top + y) * image.shape.width + region.left) * channels,
        region.width * channels,
        value);
  }
}

} // namespace lockstep::internal
