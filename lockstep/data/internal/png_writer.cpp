// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/png_writer.h"

#include <csetjmp>

#include <png.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

// libpng ends by longjmp, which runs no destructor: what owns memory lives
// outside of the functions that it may leave.
struct WriteJob {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string bytes = {};

  WriteJob() = default;
  WriteJob(const WriteJob&) = delete;
  WriteJob& operator=(const WriteJob&) = delete;
  ~WriteJob() {
    png_destroy_write_struct(&png, &info);
  }
};

void append(png_structp png, png_bytep bytes, std::size_t count) {
  auto* job = static_cast<WriteJob*>(png_get_io_ptr(png));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes
  job->bytes.append(reinterpret_cast<const char*>(bytes), count);
}

void flush(png_structp /*png*/) {}

// False if libpng refuses the image.
bool encode(WriteJob& job, const Image& image) {
  job.png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  job.info = png_create_info_struct(job.png);
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp): libpng's way
  if (setjmp(png_jmpbuf(job.png)) != 0) {
    return false;
  }
  const ImageShape& shape = image.shape;
  png_set_write_fn(job.png, &job, append, flush);
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
  png_write_info(job.png, job.info);
  for (std::int64_t y = 0; y < shape.height; ++y) {
    png_write_row(
        job.png,
        image.pixels.data() + y * shape.width * shape.channels);
  }
  png_write_end(job.png, nullptr);
  return true;
}

} // namespace

void write_png(const Image& image, const std::string& path, FileSystem& fs) {
  const ImageShape& shape = image.shape;
  const bool is_image =
      (shape.channels == 1 || shape.channels == 3) && shape.height > 0 &&
      shape.width > 0 &&
      image.pixels.size() == static_cast<std::size_t>(shape.numel());
  WriteJob job;
  if (!is_image || !encode(job, image)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.png",
         .message = format(
             "cannot write an image of {} x {} with {} channels",
             shape.width,
             shape.height,
             shape.channels),
         .path = path,
         .detail = "E_IMAGE"});
  }
  write_file_atomically(fs, path, job.bytes).value();
}

} // namespace lockstep::internal
