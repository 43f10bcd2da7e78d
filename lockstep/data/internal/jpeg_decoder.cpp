// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <vector>

#include <jpeglib.h>
// After jpeglib.h, which it needs.
#include <jerror.h>

#include "lockstep/data/internal/image_decoders.h"

namespace lockstep::internal {
namespace {

// libjpeg ends by longjmp, which runs no destructor: what owns memory lives
// outside of the functions that it may leave.
struct JpegJob {
  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf end = {};
  std::array<char, JMSG_LENGTH_MAX> reason = {};

  JpegJob() = default;
  JpegJob(const JpegJob&) = delete;
  JpegJob& operator=(const JpegJob&) = delete;
  ~JpegJob() {
    jpeg_destroy_decompress(&jpeg);
  }
};

[[noreturn]] void stop(j_common_ptr jpeg) {
  auto* job = static_cast<JpegJob*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, job->reason.data());
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libjpeg's way
  std::longjmp(job->end, 1);
}

// A negative level is a warning, after which libjpeg makes pixels up. Bytes
// between markers are looked over: no pixel depends on them.
void warn(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) {
    stop(jpeg);
  }
}

// The smallest of 1/8, 1/4, 1/2 and 1 of which both sides have `min_side`
// pixels.
unsigned denominator_for(const ImageShape& whole, std::int64_t min_side) {
  for (const unsigned denominator : {8U, 4U, 2U}) {
    const auto scaled = [&](std::int64_t side) {
      return (side + denominator - 1) / denominator;
    };
    if (min_side > 0 && scaled(whole.width) >= min_side &&
        scaled(whole.height) >= min_side) {
      return denominator;
    }
  }
  return 1;
}

// False if libjpeg stopped: `reason` has it.
bool read_header(JpegJob& job, ByteSpan bytes) {
  jpeg_decompress_struct& jpeg = job.jpeg;
  jpeg.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = stop;
  job.errors.emit_message = warn;
  jpeg.client_data = &job;
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libjpeg's way
  if (setjmp(job.end) != 0) {
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(
      &jpeg,
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): raw bytes
      reinterpret_cast<const unsigned char*>(bytes.data()),
      bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  const bool is_cmyk = jpeg.num_components == 4;
  const bool is_grey = jpeg.num_components == 1;
  jpeg.out_color_space = is_cmyk ? JCS_CMYK : is_grey ? JCS_GRAYSCALE : JCS_RGB;
  return true;
}

// Of all that the file has, made smaller.
ImageShape scaled_shape(const JpegJob& job, unsigned denominator) {
  const auto scaled = [&](JDIMENSION side) {
    return (std::int64_t{side} + denominator - 1) / denominator;
  };
  const J_COLOR_SPACE colors = job.jpeg.out_color_space;
  return {
      .channels = colors == JCS_CMYK        ? 4
                  : colors == JCS_GRAYSCALE ? 1
                                            : 3,
      .height = scaled(job.jpeg.image_height),
      .width = scaled(job.jpeg.image_width)};
}

// What libjpeg computes of an image of `width`: the part's columns and as many
// beside them as colours of half the resolution are interpolated from.
struct Columns {
  JDIMENSION first = 0;
  JDIMENSION count = 0;
};
Columns columns_of(const Region& part, std::int64_t width) {
  constexpr std::int64_t kBeside = 16;
  const std::int64_t left = std::max<std::int64_t>(part.left - kBeside, 0);
  const std::int64_t right = std::min(part.left + part.width + kBeside, width);
  return {
      .first = static_cast<JDIMENSION>(left),
      .count = static_cast<JDIMENSION>(right - left)};
}

// Rows and columns of `part`, each row over `line`, which has room for a row of
// the image. False if libjpeg stopped.
bool read_part(
    JpegJob& job,
    const Region& part,
    Columns columns,
    std::uint8_t* line,
    std::uint8_t* out) {
  jpeg_decompress_struct& jpeg = job.jpeg;
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libjpeg's way
  if (setjmp(job.end) != 0) {
    return false;
  }
  jpeg_start_decompress(&jpeg);
  // Colours of a quarter of the resolution reach further than the columns
  // beside a part.
  if (jpeg.max_h_samp_factor > 2) {
    columns = {.first = 0, .count = jpeg.output_width};
  }
  if (columns.count < jpeg.output_width) {
    jpeg_crop_scanline(&jpeg, &columns.first, &columns.count);
  }
  if (part.top > 0) {
    jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(part.top));
  }
  const auto channels = static_cast<std::size_t>(jpeg.output_components);
  const std::size_t stride = channels * static_cast<std::size_t>(part.width);
  const std::size_t before =
      channels * (static_cast<std::size_t>(part.left) - columns.first);
  const bool is_whole = jpeg.output_width == part.width;
  for (std::int64_t y = 0; y < part.height; ++y) {
    std::uint8_t* const to = out + static_cast<std::size_t>(y) * stride;
    JSAMPROW row = is_whole ? to : line;
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (!is_whole) {
      std::copy_n(line + before, stride, to);
    }
  }
  if (jpeg.output_scanline == jpeg.output_height) {
    jpeg_finish_decompress(&jpeg);
  }
  return true;
}

// Adobe's inverted CMYK to RGB, as Pillow does it.
Image from_cmyk(const Image& image) {
  Image rgb{.shape = image.shape};
  rgb.shape.channels = 3;
  rgb.pixels.reserve(image.pixels.size() / 4 * 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 4) {
    const unsigned black = image.pixels[i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = (255U - image.pixels[i + c]) * black + 128U;
      rgb.pixels.push_back(
          static_cast<std::uint8_t>(black - (((product >> 8) + product) >> 8)));
    }
  }
  return rgb;
}

} // namespace

ImageShape
jpeg_shape(ByteSpan bytes, const std::string& path, std::int64_t min_side) {
  JpegJob job;
  if (!read_header(job, bytes)) {
    damaged_image(path, job.reason.data());
  }
  return scaled_shape(job, denominator_for(scaled_shape(job, 1), min_side));
}

Image decode_jpeg(
    ByteSpan bytes,
    const std::string& path,
    std::int64_t min_side,
    const ChooseRegion& choose) {
  JpegJob job;
  if (!read_header(job, bytes)) {
    damaged_image(path, job.reason.data());
  }
  const unsigned denominator = denominator_for(scaled_shape(job, 1), min_side);
  const ImageShape whole = scaled_shape(job, denominator);
  check_pixels(whole, path);
  const Region part = chosen_region(choose, whole);
  Image image = empty_image(
      {.channels = whole.channels, .height = part.height, .width = part.width},
      path);
  job.jpeg.scale_num = 1;
  job.jpeg.scale_denom = denominator;
  std::vector<std::uint8_t> line(
      static_cast<std::size_t>(whole.channels * whole.width));
  if (!read_part(
          job,
          part,
          columns_of(part, whole.width),
          line.data(),
          image.pixels.data())) {
    damaged_image(path, job.reason.data());
  }
  return image.shape.channels == 4 ? from_cmyk(image) : image;
}

} // namespace lockstep::internal
