// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/image_decoders.h"

namespace lockstep {
namespace {

using internal::ChooseRegion;
using internal::Region;

[[noreturn]] void unsupported(const std::string& path, std::string message) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "data.image",
       .message = std::move(message),
       .hint = "images are JPEG, PNG or WebP files",
       .path = path,
       .detail = "E_IMAGE_FORMAT"});
}

// A row for each format.
struct ImageFormat {
  bool (*is_it)(std::string_view text) = nullptr;
  Image (*decode)(
      ByteSpan bytes,
      const std::string& path,
      std::int64_t min_side,
      const ChooseRegion& choose) = nullptr;
  ImageShape (*shape)(
      ByteSpan bytes,
      const std::string& path,
      std::int64_t min_side) = nullptr;
};

constexpr std::array<ImageFormat, 3> kImageFormats{{
    {[](std::string_view text) { return text.starts_with("\xff\xd8\xff"); },
     internal::decode_jpeg,
     internal::jpeg_shape},
    {[](std::string_view text) {
       return text.starts_with("\x89PNG\r\n\x1a\n");
     },
     [](ByteSpan bytes,
        const std::string& path,
        std::int64_t /*min_side*/,
        const ChooseRegion& choose) {
       return internal::decode_png(bytes, path, choose);
     },
     [](ByteSpan bytes, const std::string& path, std::int64_t /*min_side*/) {
       return internal::png_shape(bytes, path);
     }},
    {[](std::string_view text) {
       return text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP");
     },
     [](ByteSpan bytes,
        const std::string& path,
        std::int64_t /*min_side*/,
        const ChooseRegion& choose) {
       return internal::decode_webp(bytes, path, choose);
     },
     [](ByteSpan bytes, const std::string& path, std::int64_t /*min_side*/) {
       return internal::webp_shape(bytes, path);
     }},
}};

const ImageFormat& image_format_of(ByteSpan bytes, const std::string& path) {
  const std::string_view text = as_text(bytes);
  const auto* const found = std::ranges::find_if(
      kImageFormats,
      [&](const ImageFormat& format) { return format.is_it(text); });
  if (found == kImageFormats.end()) {
    unsupported(
        path,
        bytes.empty() ? "an empty file is no image"
                      : "the file is of no image format that is read");
  }
  return *found;
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

const Turn& turn_of(int orientation) {
  return kTurns.at(static_cast<std::size_t>(orientation));
}

// Of the turned image, from that of the file, or the other way round.
ImageShape turned_shape(ImageShape shape, const Turn& turn) {
  if (turn.transposed) {
    std::swap(shape.height, shape.width);
  }
  return shape;
}

// Where a region of the turned image lies in that of the file; `whole` is the
// turned one's.
Region
turned_back(const Region& region, const ImageShape& whole, const Turn& turn) {
  const std::int64_t top =
      turn.flipped ? whole.height - region.top - region.height : region.top;
  const std::int64_t left =
      turn.mirrored ? whole.width - region.left - region.width : region.left;
  return turn.transposed
             ? Region{.top = left, .left = top, .height = region.width, .width = region.height}
             : Region{.top = top, .left = left, .height = region.height, .width = region.width};
}

Image oriented(Image image, int orientation) {
  const Turn& turn = turn_of(orientation);
  if (orientation == internal::kNotTurned) {
    return image;
  }
  Image turned{.shape = turned_shape(image.shape, turn)};
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

void check_options(const DecodeOptions& options) {
  if (options.channels != 1 && options.channels != 3) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.image",
         .message = format(
             "an image is read with 1 channel or 3, not {}",
             options.channels),
         .detail = "E_DATA_OPTION"});
  }
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

void check_pixels(const ImageShape& shape, const std::string& path) {
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
}

Image empty_image(const ImageShape& shape, const std::string& path) {
  check_pixels(shape, path);
  return {
      .shape = shape,
      .pixels =
          std::vector<std::uint8_t>(static_cast<std::size_t>(shape.numel()))};
}

Region chosen_region(const ChooseRegion& choose, const ImageShape& whole) {
  return choose ? choose(whole)
                : Region{.height = whole.height, .width = whole.width};
}

Image decode_part(
    ByteSpan bytes,
    const std::string& path,
    const DecodeOptions& options,
    const ChooseRegion& choose) {
  check_options(options);
  const int orientation = options.orient ? exif_orientation(bytes) : kNotTurned;
  const auto choose_stored = [&](const ImageShape& stored) {
    const Turn& turn = turn_of(orientation);
    const ImageShape whole = turned_shape(stored, turn);
    return turned_back(choose(whole), whole, turn);
  };
  return oriented(
      with_channels(
          image_format_of(bytes, path)
              .decode(
                  bytes,
                  path,
                  options.min_side,
                  choose ? ChooseRegion(choose_stored) : ChooseRegion()),
          options.channels),
      orientation);
}

ImageShape decoded_shape(
    ByteSpan bytes,
    const std::string& path,
    const DecodeOptions& options) {
  check_options(options);
  const int orientation = options.orient ? exif_orientation(bytes) : kNotTurned;
  ImageShape shape = turned_shape(
      image_format_of(bytes, path).shape(bytes, path, options.min_side),
      turn_of(orientation));
  shape.channels = options.channels;
  check_pixels(shape, path);
  return shape;
}

} // namespace internal

Image decode_image(
    ByteSpan bytes,
    const std::string& path,
    const DecodeOptions& options) {
  return internal::decode_part(bytes, path, options, {});
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
