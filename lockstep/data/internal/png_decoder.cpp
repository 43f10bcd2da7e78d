// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <png.h>

#include "lockstep/data/internal/image_decoders.h"

namespace lockstep::internal {
namespace {

// libpng ends by longjmp, which runs no destructor: what owns memory lives
// outside of the functions that it may leave.
struct Job {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::byte* next = nullptr;
  std::size_t left = 0;
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
  png_set_expand(job.png); // palettes, and fewer than 8 bits
  png_set_strip_16(job.png);
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

} // namespace

Image decode_png(ByteSpan bytes, const std::string& path) {
  Job job;
  if (!read_header(job, bytes)) {
    damaged_image(path, job.reason.data());
  }
  Image image = empty_image(
      {.channels = png_get_channels(job.png, job.info),
       .height = png_get_image_height(job.png, job.info),
       .width = png_get_image_width(job.png, job.info)},
      path);
  const std::int64_t stride = image.shape.channels * image.shape.width;
  std::vector<png_bytep> rows;
  rows.reserve(static_cast<std::size_t>(image.shape.height));
  for (std::int64_t y = 0; y < image.shape.height; ++y) {
    rows.push_back(image.pixels.data() + y * stride);
  }
  if (!read_rows(job, rows.data())) {
    damaged_image(path, job.reason.data());
  }
  return image;
}

} // namespace lockstep::internal
