// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/image_squares.h"

#include <algorithm>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

// Which square says what a pixel is, `place` along the longer side.
std::size_t nearest_square(
    const std::vector<ImageSquare>& squares,
    std::int64_t place) {
  // Twice the distance of the middles.
  const auto distance = [place](const ImageSquare& square) {
    const std::int64_t start = square.top + square.left; // one of them is 0
    return std::abs(2 * place + 1 - (2 * start + square.side));
  };
  const auto nearest = std::ranges::min_element(squares, {}, distance);
  return static_cast<std::size_t>(nearest - squares.begin());
}

} // namespace

std::vector<ImageSquare> squares_over(const ImageShape& shape) {
  const std::int64_t side = std::min(shape.height, shape.width);
  const std::int64_t longer = std::max(shape.height, shape.width);
  const std::int64_t count = (longer + side - 1) / side;
  constexpr std::int64_t kMaxSquares = 64; // each is an image of the model's
  if (count > kMaxSquares) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "predict",
         .message = format(
             "an image of {} x {} pixels is too thin for a mask: it is {} "
             "squares long, at most {} are looked at",
             shape.width,
             shape.height,
             count,
             kMaxSquares),
         .hint = "cut it into parts",
         .detail = "E_IMAGE_SIZE"});
  }
  std::vector<ImageSquare> squares;
  squares.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t start =
        count == 1 ? 0 : i * (longer - side) / (count - 1);
    const bool is_wide = shape.width > shape.height;
    squares.push_back(
        {.top = is_wide ? 0 : start,
         .left = is_wide ? start : 0,
         .side = side});
  }
  return squares;
}

Image cut(const Image& image, const ImageSquare& square) {
  const std::int64_t channels = image.shape.channels;
  Image part{
      .shape = {
          .channels = channels,
          .height = square.side,
          .width = square.side}};
  part.pixels.resize(static_cast<std::size_t>(part.shape.numel()));
  auto to = part.pixels.begin();
  for (std::int64_t y = square.top; y < square.top + square.side; ++y) {
    const std::int64_t from = (y * image.shape.width + square.left) * channels;
    to = std::copy_n(image.pixels.begin() + from, square.side * channels, to);
  }
  return part;
}

Image join_masks(
    const ImageShape& shape,
    const std::vector<ImageSquare>& squares,
    const std::vector<Image>& masks) {
  LOCKSTEP_CHECK(!squares.empty() && squares.size() == masks.size());
  Image whole{
      .shape = {.channels = 1, .height = shape.height, .width = shape.width}};
  whole.pixels.reserve(static_cast<std::size_t>(whole.shape.numel()));
  const bool is_wide = shape.width > shape.height;
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const std::size_t i = nearest_square(squares, is_wide ? x : y);
      const ImageSquare& square = squares[i];
      const std::int64_t size = masks[i].shape.width;
      // The middle of the pixel, in pixels of the mask.
      const auto place = [&](std::int64_t pixel, std::int64_t start) {
        return (2 * (pixel - start) + 1) * size / (2 * square.side);
      };
      whole.pixels.push_back(masks[i].pixels[static_cast<std::size_t>(
          place(y, square.top) * size + place(x, square.left))]);
    }
  }
  return whole;
}

} // namespace lockstep::internal
