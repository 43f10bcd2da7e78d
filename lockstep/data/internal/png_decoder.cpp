// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <utility>
#include <vector>

#include <libdeflate.h>
#include <png.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/image_decoders.h"
#include "lockstep/data/internal/image_geometry.h"

namespace lockstep::internal {
namespace {

// libpng ends by longjmp, which runs no destructor: what owns memory lives
// outside of the functions that it may leave.
struct Job {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::byte* next = nullptr;
  std::size_t left = 0;
  /// Palettes stay indices, and numbers of fewer or more than 8 bits theirs.
  bool keeps_numbers = false;
  std::array<char, 128> reason = {};

  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    png_destroy_read_struct(&png, &info, nullptr);
  }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* job = static_cast<Job*>(png_get_error_ptr(png));
  std::strncpy(job->reason.data(), message, job->reason.size() - 1);
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libpng's way
  longjmp(png_jmpbuf(png), 1);
}

void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* job = static_cast<Job*>(png_get_io_ptr(png));
  if (count > job->left) {
    png_error(png, "the file ends too early");
  }
  std::memcpy(to, job->next, count);
  job->next += count;
  job->left -= count;
}

// False if libpng found an error: `reason` has it.
bool read_header(Job& job, ByteSpan bytes) {
  job.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
  job.next = bytes.data();
  job.left = bytes.size();
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libpng's way
  if (setjmp(png_jmpbuf(job.png)) != 0) {
    return false;
  }
  job.info = png_create_info_struct(job.png);
  png_set_read_fn(job.png, &job, read_bytes);
  png_read_info(job.png, job.info);
  if (job.keeps_numbers) {
    png_set_packing(job.png);
  } else {
    png_set_expand(job.png); // palettes, and fewer than 8 bits
    png_set_strip_16(job.png);
  }
  png_set_strip_alpha(job.png);
  png_set_interlace_handling(job.png);
  png_read_update_info(job.png, job.info);
  return true;
}

bool read_rows(Job& job, png_bytepp rows) {
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libpng's way
  if (setjmp(png_jmpbuf(job.png)) != 0) {
    return false;
  }
  png_read_image(job.png, rows);
  png_read_end(job.png, nullptr);
  return true;
}

// What libpng does at the end of each chunk of pixels, which a part does not
// come to. A chunk: length, type, data, CRC-32 of type and data, big-endian.
void check_chunks(ByteSpan bytes, const std::string& path) {
  constexpr std::size_t kFrame = 12; // length, type and CRC
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (const std::byte byte : bytes.subspan(at, 4)) {
      value = value << 8 | std::to_integer<std::uint32_t>(byte);
    }
    return value;
  };
  constexpr std::size_t kSignature = 8;
  for (std::size_t at = kSignature; at + kFrame <= bytes.size();) {
    const std::size_t length = number(at);
    if (length > bytes.size() - at - kFrame) {
      return; // cut here: whoever reads so far tells
    }
    const ByteSpan data = bytes.subspan(at + 4, length + 4);
    if (as_text(data).starts_with("IDAT") &&
        libdeflate_crc32(0, data.data(), data.size()) !=
            number(at + 8 + length)) {
      damaged_image(path, "IDAT: CRC error");
    }
    at += length + kFrame;
  }
}

// The rows of a part, columns and all, and none below it. Each goes to `line`,
// and from there its columns to `out`. False as above.
bool read_part(
    Job& job,
    const Region& part,
    std::size_t channels,
    png_bytep line,
    std::uint8_t* out) {
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libpng's way
  if (setjmp(png_jmpbuf(job.png)) != 0) {
    return false;
  }
  const std::size_t left = static_cast<std::size_t>(part.left) * channels;
  const std::size_t width = static_cast<std::size_t>(part.width) * channels;
  for (std::int64_t y = 0; y < part.top + part.height; ++y) {
    png_read_row(job.png, line, nullptr);
    if (y >= part.top) {
      std::memcpy(
          out + static_cast<std::size_t>(y - part.top) * width,
          line + left,
          width);
    }
  }
  return true;
}

// Pixels as libpng has them after `read_header`. Shape: [H, W,
// bytes_per_pixel].
std::vector<std::uint8_t> read_pixels(
    Job& job,
    const ImageShape& shape,
    std::int64_t bytes_per_pixel,
    const std::string& path) {
  Image image = empty_image(
      {.channels = bytes_per_pixel,
       .height = shape.height,
       .width = shape.width},
      path);
  const std::int64_t stride = bytes_per_pixel * shape.width;
  std::vector<png_bytep> rows;
  rows.reserve(static_cast<std::size_t>(shape.height));
  for (std::int64_t y = 0; y < shape.height; ++y) {
    rows.push_back(image.pixels.data() + y * stride);
  }
  if (!read_rows(job, rows.data())) {
    damaged_image(path, job.reason.data());
  }
  return std::move(image.pixels);
}

ImageShape shape_of(const Job& job) {
  return {
      .channels = png_get_channels(job.png, job.info),
      .height = png_get_image_height(job.png, job.info),
      .width = png_get_image_width(job.png, job.info)};
}

[[noreturn]] void bad_mask(const std::string& path, std::string message) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "data.mask",
       .message = std::move(message),
       .hint = "expected a PNG file with a palette, or in grey, whose numbers "
               "are classes",
       .path = path,
       .detail = "E_MASK"});
}

// Numbers of 16 bits, high byte first, in 8.
std::vector<std::uint8_t> narrowed(
    const std::vector<std::uint8_t>& wide,
    const std::string& path) {
  std::vector<std::uint8_t> narrow;
  narrow.reserve(wide.size() / 2);
  for (std::size_t i = 0; i + 1 < wide.size(); i += 2) {
    const int number = wide[i] << 8 | wide[i + 1];
    constexpr int kIgnored = 65535; // as 255 in 8 bits
    if (number > 255 && number != kIgnored) {
      bad_mask(
          path,
          format("the mask has the number {}; expected 0 to 255", number));
    }
    narrow.push_back(static_cast<std::uint8_t>(number));
  }
  return narrow;
}

} // namespace

ImageShape png_shape(ByteSpan bytes, const std::string& path) {
  Job job;
  if (!read_header(job, bytes)) {
    damaged_image(path, job.reason.data());
  }
  return shape_of(job);
}

Image decode_png(
    ByteSpan bytes,
    const std::string& path,
    const ChooseRegion& choose) {
  Job job;
  if (!read_header(job, bytes)) {
    damaged_image(path, job.reason.data());
  }
  const ImageShape shape = shape_of(job);
  check_pixels(shape, path);
  // Interlaced rows are there after all others.
  const bool is_interlaced =
      png_get_interlace_type(job.png, job.info) != PNG_INTERLACE_NONE;
  if (!choose || is_interlaced) {
    Image image{
        .shape = shape,
        .pixels = read_pixels(job, shape, shape.channels, path)};
    return choose ? cropped(image, choose(shape), 0) : image;
  }
  check_chunks(bytes, path);
  const Region part = choose(shape);
  Image image = empty_image(
      {.channels = shape.channels, .height = part.height, .width = part.width},
      path);
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<png_byte> line(channels * static_cast<std::size_t>(shape.width));
  if (!read_part(job, part, channels, line.data(), image.pixels.data())) {
    damaged_image(path, job.reason.data());
  }
  return image;
}

Image decode_mask(ByteSpan bytes, const std::string& path) {
  if (!as_text(bytes).starts_with("\x89PNG\r\n\x1a\n")) {
    bad_mask(
        path,
        bytes.empty() ? "an empty file is no mask" : "the mask is no PNG file");
  }
  Job job;
  job.keeps_numbers = true;
  if (!read_header(job, bytes)) {
    damaged_image(path, job.reason.data());
  }
  const ImageShape shape = shape_of(job);
  if (shape.channels != 1) {
    bad_mask(path, "the mask has colours, not numbers of classes");
  }
  constexpr int kWide = 16;
  const bool is_wide = png_get_bit_depth(job.png, job.info) == kWide;
  std::vector<std::uint8_t> pixels =
      read_pixels(job, shape, is_wide ? 2 : 1, path);
  return {
      .shape = shape,
      .pixels = is_wide ? narrowed(pixels, path) : std::move(pixels)};
}

} // namespace lockstep::internal
