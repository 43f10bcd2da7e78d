// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/png_writer.h"

#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <png.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

// As png_decoder.cpp: libpng ends by longjmp, so what owns memory lives outside
// of what it may leave.
struct WriteJob {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string bytes = {};
  std::array<char, 128> reason = {};

  WriteJob() = default;
  WriteJob(const WriteJob&) = delete;
  WriteJob& operator=(const WriteJob&) = delete;
  ~WriteJob() {
    png_destroy_write_struct(&png, &info);
  }
};

[[noreturn]] void on_write_error(png_structp png, png_const_charp message) {
  auto* job = static_cast<WriteJob*>(png_get_error_ptr(png));
  std::strncpy(job->reason.data(), message, job->reason.size() - 1);
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libpng's way
  longjmp(png_jmpbuf(png), 1);
}

void on_write_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void append_bytes(png_structp png, png_bytep from, std::size_t count) {
  auto* job = static_cast<WriteJob*>(png_get_io_ptr(png));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  job->bytes.append(reinterpret_cast<const char*>(from), count);
}

void flush_nothing(png_structp /*png*/) {}

// False if libpng found an error: `reason` has it.
bool write_rows(WriteJob& job, const ImageShape& shape, png_bytepp rows) {
  job.png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING,
      &job,
      on_write_error,
      on_write_warning);
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libpng's way
  if (setjmp(png_jmpbuf(job.png)) != 0) {
    return false;
  }
  job.info = png_create_info_struct(job.png);
  png_set_write_fn(job.png, &job, append_bytes, flush_nothing);
  png_set_IHDR(
      job.png,
      job.info,
      static_cast<png_uint_32>(shape.width),
      static_cast<png_uint_32>(shape.height),
      8,
      shape.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
      PNG_INTERLACE_NONE,
      PNG_COMPRESSION_TYPE_DEFAULT,
      PNG_FILTER_TYPE_DEFAULT);
  png_set_rows(job.png, job.info, rows);
  png_write_png(job.png, job.info, PNG_TRANSFORM_IDENTITY, nullptr);
  return true;
}

[[noreturn]] void cannot_encode(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.image",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

} // namespace

std::string encode_png(const Image& image) {
  const ImageShape& shape = image.shape;
  if (shape.height < 1 || shape.width < 1 ||
      (shape.channels != 1 && shape.channels != 3) ||
      std::ssize(image.pixels) != shape.numel()) {
    cannot_encode(format(
        "cannot write an image of {} x {} pixels and {} channels as PNG",
        shape.width,
        shape.height,
        shape.channels));
  }
  std::vector<std::uint8_t> pixels =
      image.pixels; // libpng's rows are not const
  std::vector<png_bytep> rows;
  rows.reserve(static_cast<std::size_t>(shape.height));
  for (std::int64_t y = 0; y < shape.height; ++y) {
    rows.push_back(pixels.data() + y * shape.width * shape.channels);
  }
  WriteJob job;
  if (!write_rows(job, shape, rows.data())) {
    cannot_encode(format("libpng: {}", std::string(job.reason.data())));
  }
  return std::move(job.bytes);
}

} // namespace lockstep::internal
