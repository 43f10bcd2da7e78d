// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <csetjmp>
#include <cstdio>

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

// The smallest of 1/8, 1/4, 1/2 and 1 whose sides have `min_side` pixels.
unsigned scale_for(const jpeg_decompress_struct& jpeg, std::int64_t min_side) {
  for (const unsigned denominator : {8U, 4U, 2U}) {
    const auto scaled = [&](JDIMENSION side) {
      return (side + denominator - 1) / denominator;
    };
    if (min_side > 0 && scaled(jpeg.image_width) >= min_side &&
        scaled(jpeg.image_height) >= min_side) {
      return denominator;
    }
  }
  return 1;
}

// False if libjpeg stopped: `reason` has it.
bool read_header(JpegJob& job, ByteSpan bytes, std::int64_t min_side) {
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
  jpeg.scale_num = 1;
  jpeg.scale_denom = scale_for(jpeg, min_side);
  jpeg_calc_output_dimensions(&jpeg);
  return true;
}

bool read_rows(JpegJob& job, std::uint8_t* out, std::size_t stride) {
  jpeg_decompress_struct& jpeg = job.jpeg;
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libjpeg's way
  if (setjmp(job.end) != 0) {
    return false;
  }
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = out + jpeg.output_scanline * stride;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
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

Image decode_jpeg(
    ByteSpan bytes,
    const std::string& path,
    std::int64_t min_side) {
  JpegJob job;
  if (!read_header(job, bytes, min_side)) {
    damaged_image(path, job.reason.data());
  }
  Image image = empty_image(
      {.channels = job.jpeg.out_color_components,
       .height = job.jpeg.output_height,
       .width = job.jpeg.output_width},
      path);
  const auto stride =
      static_cast<std::size_t>(image.shape.channels * image.shape.width);
  if (!read_rows(job, image.pixels.data(), stride)) {
    damaged_image(path, job.reason.data());
  }
  return image.shape.channels == 4 ? from_cmyk(image) : image;
}

} // namespace lockstep::internal
