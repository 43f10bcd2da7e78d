// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/philox.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxPadding = 1024;
// Samples lie anywhere in a table larger than the caches: ask for them early.
constexpr std::size_t kImagesAhead = 2;
constexpr std::int64_t kCacheLine = 64;

void invalid_transform(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.transform",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

std::uint32_t low_word(std::int64_t value) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
}

std::uint32_t high_word(std::int64_t value) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32);
}

// Reverses `row` in place, eight bytes a step from both ends.
void mirror(std::uint8_t* row, std::int64_t width) {
  std::int64_t left = 0;
  std::int64_t right = width;
  for (; right - left >= 16; left += 8, right -= 8) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, row + left, 8);
    std::memcpy(&b, row + right - 8, 8);
    a = __builtin_bswap64(a);
    b = __builtin_bswap64(b);
    std::memcpy(row + left, &b, 8);
    std::memcpy(row + right - 8, &a, 8);
  }
  std::reverse(row + left, row + right);
}

void prefetch(const std::uint8_t* image, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += kCacheLine) {
    __builtin_prefetch(image + i);
  }
}

// One channel, cropped from its padded self and maybe mirrored.
void augment_plane(
    const std::uint8_t* plane,
    const ImageShape& shape,
    std::int64_t padding,
    const Augmentation& choice,
    std::uint8_t* out) {
  const std::int64_t shift_y = choice.top - padding;
  const std::int64_t shift_x = choice.left - padding;
  const std::int64_t begin = std::clamp<std::int64_t>(-shift_x, 0, shape.width);
  const std::int64_t end =
      std::clamp<std::int64_t>(shape.width - shift_x, begin, shape.width);
  for (std::int64_t y = 0; y < shape.height; ++y, out += shape.width) {
    const std::int64_t source_y = y + shift_y;
    if (source_y < 0 || source_y >= shape.height || begin == end) {
      std::memset(out, 0, static_cast<std::size_t>(shape.width));
      continue;
    }
    const std::uint8_t* row = plane + source_y * shape.width;
    std::fill(out, out + begin, std::uint8_t{0});
    std::copy(row + begin + shift_x, row + end + shift_x, out + begin);
    std::fill(out + end, out + shape.width, std::uint8_t{0});
    if (choice.flip) {
      mirror(out, shape.width);
    }
  }
}

void check(const ImageShape& shape, const TransformOptions& options) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  if (options.mean.size() != channels || options.std.size() != channels) {
    invalid_transform(format(
        "expected one mean and one std per channel ({}), got {} and {}",
        shape.channels,
        options.mean.size(),
        options.std.size()));
  }
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::ranges::all_of(options.mean, finite) ||
      !std::ranges::all_of(options.std, finite) ||
      std::ranges::find(options.std, 0.0F) != options.std.end()) {
    invalid_transform("mean and std must be finite, and std not 0");
  }
  if (options.crop_padding < 0 || options.crop_padding > kMaxPadding) {
    invalid_transform(format(
        "crop_padding must be 0 to {}, got {}",
        kMaxPadding,
        options.crop_padding));
  }
}

} // namespace

Augmentation augmentation(
    const TransformOptions& options,
    std::int64_t epoch,
    std::int64_t index) {
  const PhiloxBlock words = philox(
      {low_word(index), high_word(index), low_word(epoch), high_word(epoch)},
      {low_word(options.seed), high_word(options.seed)});
  const auto places = static_cast<std::uint32_t>(2 * options.crop_padding + 1);
  return {
      .top = scale_to(words[0], places),
      .left = scale_to(words[1], places),
      .flip = options.horizontal_flip && words[2] >> 31 != 0};
}

Transform::Transform(const ImageShape& shape, TransformOptions options)
    : shape_(shape), options_(std::move(options)) {
  check(shape_, options_);
  for (std::size_t c = 0; c < options_.mean.size(); ++c) {
    channels_.emplace_back(options_.mean[c], options_.std[c]);
  }
}

void Transform::normalise(const std::uint8_t* image, float* out) const {
  const std::int64_t plane = shape_.height * shape_.width;
  for (const Normaliser& channel : channels_) {
    channel.apply({image, static_cast<std::size_t>(plane)}, out);
    image += plane;
    out += plane;
  }
}

void Transform::apply(
    const std::uint8_t* image,
    std::int64_t index,
    std::int64_t epoch,
    std::vector<std::uint8_t>& scratch,
    float* out) const {
  if (options_.crop_padding > 0 || options_.horizontal_flip) {
    const std::int64_t plane = shape_.height * shape_.width;
    scratch.resize(static_cast<std::size_t>(shape_.numel()));
    const Augmentation choice = augmentation(options_, epoch, index);
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      augment_plane(
          image + c * plane,
          shape_,
          options_.crop_padding,
          choice,
          scratch.data() + c * plane);
    }
    image = scratch.data();
  }
  normalise(image, out);
}

void Transform::gather(
    std::span<const std::uint8_t> pixels,
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    std::span<float> out) const {
  const std::int64_t numel = shape_.numel();
  std::vector<std::uint8_t> scratch;
  float* target = out.data();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + kImagesAhead < indices.size()) {
      prefetch(pixels.data() + indices[i + kImagesAhead] * numel, numel);
    }
    const std::int64_t index = indices[i];
    apply(pixels.data() + index * numel, index, epoch, scratch, target);
    target += numel;
  }
}

} // namespace lockstep
