// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/image_files.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/check_index.h"
#include "lockstep/data/internal/resize_uint8.h"

namespace lockstep::internal {
namespace {

ImageShape image_shape(const PixelFormat& format) {
  if (format.shape.size() != 3) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.open",
         .message = "how pixels become samples is not known",
         .detail = "E_DATA_OPTION"});
  }
  return {
      .channels = format.shape[0],
      .height = format.shape[1],
      .width = format.shape[2]};
}

// The file's own fault, not the machine's.
bool is_of_the_file(const Error& error) {
  return error.detail.starts_with("E_IMAGE") ||
         error.code == ErrorCode::kNotFound ||
         error.detail == "E_NOT_REGULAR" || error.detail == "E_PERMISSION";
}

[[noreturn]] void
other_size(const ImageShape& is, const ImageShape& other, std::string path) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "data.image",
       .message = format(
           "the model was trained on images of {} x {}, this one is {} x {}",
           is.width,
           is.height,
           other.width,
           other.height),
       .hint = "images are resized for models of square images only: make it "
               "that size",
       .path = std::move(path),
       .detail = "E_IMAGE_SIZE"});
}

} // namespace

ImageFiles::ImageFiles(
    std::vector<std::string> paths,
    PixelFormat format,
    OnBadImage on_bad_image,
    FileSystem& fs)
    : paths_(std::move(paths)),
      format_(std::move(format)),
      transform_(
          image_shape(format_),
          {.mean = format_.mean, .std = format_.std}),
      on_bad_image_(on_bad_image),
      fs_(fs) {}

std::int64_t ImageFiles::size() const {
  return std::ssize(paths_);
}

std::vector<std::int64_t> ImageFiles::sample_shape() const {
  return format_.shape;
}

std::int64_t ImageFiles::num_classes() const {
  return 0;
}

PixelFormat ImageFiles::pixel_format() const {
  return format_;
}

std::string ImageFiles::sample_name(std::int64_t index) const {
  check_index(index, size());
  return paths_[static_cast<std::size_t>(index)];
}

std::optional<Error> ImageFiles::error_of(std::int64_t index) const {
  const std::scoped_lock lock(mutex_);
  const auto found = errors_.find(index);
  return found == errors_.end() ? std::nullopt : std::optional(found->second);
}

void ImageFiles::keep(std::int64_t index, const Exception& exception) const {
  if (on_bad_image_ == OnBadImage::kStop ||
      !is_of_the_file(exception.error())) {
    throw; // what the caller has caught
  }
  const std::scoped_lock lock(mutex_);
  errors_.insert_or_assign(index, exception.error());
}

Image ImageFiles::decoded(std::int64_t index, std::int64_t min_side) const {
  return read_image(
      sample_name(index),
      {.channels = transform_.shape().channels, .min_side = min_side},
      fs_);
}

std::vector<std::uint8_t> ImageFiles::planes_of(
    const Image& image,
    const std::string& path) const {
  const ImageShape& shape = transform_.shape();
  if (shape.height == shape.width) {
    return fitted_planes(image, shape.height, shape.height);
  }
  if (image.shape != shape) {
    other_size(shape, image.shape, path);
  }
  return internal::planes_of(image);
}

bool ImageFiles::try_read(std::int64_t index, float* sample) const {
  const ImageShape& shape = transform_.shape();
  std::vector<std::uint8_t> scratch;
  try {
    // Twice what is needed, as `ImageFolder` has it.
    const std::int64_t min_side =
        shape.height == shape.width ? 2 * shape.height : 0;
    const Image image = decoded(index, min_side);
    const auto planes = planes_of(image, sample_name(index));
    transform_.apply(planes.data(), index, /*epoch=*/0, scratch, sample);
    return true;
  } catch (const Exception& exception) {
    keep(index, exception);
    return false;
  }
}

void ImageFiles::read(
    std::span<const std::int64_t> indices,
    std::int64_t /*epoch*/,
    std::span<float> images,
    TargetRows /*targets*/) const {
  const std::int64_t numel = transform_.shape().numel();
  float* sample = images.data();
  for (const std::int64_t index : indices) {
    check_index(index, size());
    if (!try_read(index, sample)) {
      std::fill_n(sample, numel, 0.0F);
    }
    sample += numel;
  }
}

CutImage ImageFiles::read_squares(std::int64_t index) const {
  const ImageShape& shape = transform_.shape();
  if (shape.height != shape.width) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "data.image",
         .message = format(
             "masks are made by models of square images; this one was trained "
             "on {} x {}",
             shape.width,
             shape.height),
         .detail = "E_IMAGE_SIZE"});
  }
  Image image;
  try {
    image = decoded(index, /*min_side=*/0);
  } catch (const Exception& exception) {
    keep(index, exception);
    return {};
  }
  CutImage result{.shape = image.shape, .squares = squares_over(image.shape)};
  result.samples = at::empty(
      {std::ssize(result.squares), shape.channels, shape.height, shape.width});
  auto* sample = result.samples.mutable_data_ptr<float>();
  std::vector<std::uint8_t> scratch;
  for (const ImageSquare& square : result.squares) {
    const auto planes =
        fitted_planes(cut(image, square), shape.height, shape.height);
    transform_.apply(planes.data(), index, /*epoch=*/0, scratch, sample);
    sample += shape.numel();
  }
  return result;
}

} // namespace lockstep::internal
