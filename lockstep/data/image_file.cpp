// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/image_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/image_decoders.h"

namespace lockstep {
namespace {

using internal::decode_jpeg;
using internal::decode_png;
using internal::decode_webp;

[[noreturn]] void unsupported(const std::string& path, std::string message) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "data.image",
       .message = std::move(message),
       .hint = "images are JPEG, PNG or WebP files",
       .path = path,
       .detail = "E_IMAGE_FORMAT"});
}

Image decode_any(
    ByteSpan bytes,
    const std::string& path,
    std::int64_t min_side) {
  const std::string_view text = as_text(bytes);
  if (text.starts_with("\xff\xd8\xff")) {
    return decode_jpeg(bytes, path, min_side);
  }
  if (text.starts_with("\x89PNG\r\n\x1a\n")) {
    return decode_png(bytes, path);
  }
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) {
    return decode_webp(bytes, path);
  }
  unsupported(
      path,
      bytes.empty() ? "an empty file is no image"
                    : "the file is of no image format that is read");
}

// Pillow's weights of red, green and blue in grey: ITU-R 601, in 1 / 65536.
std::uint8_t grey(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>(
      (19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16);
}

Image with_channels(Image image, std::int64_t channels) {
  if (image.shape.channels == channels) {
    return image;
  }
  Image other{.shape = image.shape};
  other.shape.channels = channels;
  const auto pixels =
      static_cast<std::size_t>(image.shape.height * image.shape.width);
  other.pixels.resize(pixels * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < pixels; ++i) {
    if (channels == 1) {
      other.pixels[i] = grey(&image.pixels[3 * i]);
    } else {
      std::fill_n(&other.pixels[3 * i], 3, image.pixels[i]);
    }
  }
  return other;
}

// How EXIF's numbers turn an image: columns and rows are exchanged first.
struct Turn {
  bool transposed = false;
  bool mirrored = false; // left and right
  bool flipped = false; // top and bottom
};
constexpr std::array<Turn, 9> kTurns{{
    {},
    {},
    {.mirrored = true},
    {.mirrored = true, .flipped = true},
    {.flipped = true},
    {.transposed = true},
    {.transposed = true, .mirrored = true},
    {.transposed = true, .mirrored = true, .flipped = true},
    {.transposed = true, .flipped = true},
}};

Image oriented(Image image, int orientation) {
  const Turn turn = kTurns.at(static_cast<std::size_t>(orientation));
  if (orientation == 1) {
    return image;
  }
  Image turned{.shape = image.shape};
  if (turn.transposed) {
    std::swap(turned.shape.height, turned.shape.width);
  }
  turned.pixels.resize(image.pixels.size());
  const std::int64_t channels = image.shape.channels;
  std::uint8_t* out = turned.pixels.data();
  for (std::int64_t y = 0; y < turned.shape.height; ++y) {
    const std::int64_t row = turn.flipped ? turned.shape.height - 1 - y : y;
    for (std::int64_t x = 0; x < turned.shape.width; ++x) {
      const std::int64_t column =
          turn.mirrored ? turned.shape.width - 1 - x : x;
      const std::int64_t place = turn.transposed
                                     ? column * image.shape.width + row
                                     : row * image.shape.width + column;
      out = std::copy_n(&image.pixels[place * channels], channels, out);
    }
  }
  return turned;
}

} // namespace

namespace internal {

void damaged_image(const std::string& path, const std::string& reason) {
  raise(
      {.code = ErrorCode::kCorrupt,
       .op = "data.image",
       .message = "the image is damaged: " + reason,
       .path = path,
       .detail = "E_IMAGE"});
}

Image empty_image(const ImageShape& shape, const std::string& path) {
  if (shape.height < 1 || shape.width < 1) {
    damaged_image(path, "it has no pixels");
  }
  if (shape.width > kMaxImagePixels / shape.height) {
    raise(
        {.code = ErrorCode::kUnsafe,
         .op = "data.image",
         .message = format(
             "the image has {} x {} pixels, at most {} are read",
             shape.width,
             shape.height,
             kMaxImagePixels),
         .hint = "make it smaller if you trust the file",
         .path = path,
         .detail = "E_IMAGE_PIXELS"});
  }
  return {
      .shape = shape,
      .pixels =
          std::vector<std::uint8_t>(static_cast<std::size_t>(shape.numel()))};
}

} // namespace internal

Image decode_image(
    ByteSpan bytes,
    const std::string& path,
    const DecodeOptions& options) {
  if (options.channels != 1 && options.channels != 3) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.image",
         .message = format(
             "an image is read with 1 channel or 3, not {}",
             options.channels),
         .detail = "E_DATA_OPTION"});
  }
  Image image = with_channels(
      decode_any(bytes, path, options.min_side),
      options.channels);
  return options.orient
             ? oriented(std::move(image), internal::exif_orientation(bytes))
             : image;
}

Image read_image(
    const std::string& path,
    const DecodeOptions& options,
    FileSystem& fs) {
  const std::string bytes = read_text(fs, path).value();
  return decode_image(as_byte_span(bytes), path, options);
}

bool has_image_ending(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEndings{
      ".jpg",
      ".jpeg",
      ".png",
      ".webp"};
  const std::string small = lower_case(name);
  return std::ranges::any_of(kEndings, [&](std::string_view ending) {
    return small.ends_with(ending) && small.size() > ending.size();
  });
}

} // namespace lockstep
