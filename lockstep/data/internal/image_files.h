// SPDX-License-Identifier: BSD-3-Clause
//
// Image files as a trained model saw its images, without targets.
//   auto files = std::make_shared<ImageFiles>(paths, format);
//   Loader loader(files, {.batch_size = 64, .workers = 4});
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/image_squares.h"

namespace lockstep::internal {

/// What a file does that is not there, or is no image that can be decoded.
enum class OnBadImage {
  /// Reading throws its error.
  kStop,
  /// Its sample is zeros, and its error is kept.
  kSkip
};

/// An image as samples: the whole of it in squares.
struct CutImage {
  /// As the file has it, turned as EXIF says.
  ImageShape shape = {};
  std::vector<ImageSquare> squares = {};
  /// Shape: [squares, C, H, W] float32.
  at::Tensor samples = {};
};

/// Each image as an `ImageFolder` reads it: of equal files the samples are
/// equal, bit for bit. Threads: all functions may run in several at once.
class ImageFiles : public Dataset {
 public:
  /// Ownership: borrows `fs`. Errors: throws kInvalidArgument for a format that
  /// is not known, or not one of images.
  ImageFiles(
      std::vector<std::string> paths,
      PixelFormat format,
      OnBadImage on_bad_image = OnBadImage::kStop,
      FileSystem& fs = real_fs());

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] PixelFormat pixel_format() const override;
  /// The path.
  [[nodiscard]] std::string sample_name(std::int64_t index) const override;
  /// Errors: as `read_image`; kUnsupported (E_IMAGE_SIZE) for an image of
  /// another size, if the samples are no squares; kInvalidArgument for an index
  /// outside.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override;

  /// The image in squares (image_squares.h), each of the samples' size; no
  /// squares for one that is skipped.
  /// Errors: as `read`; kUnsupported if the samples are no squares.
  [[nodiscard]] CutImage read_squares(std::int64_t index) const;

  /// Why a sample that was read is zeros; nothing if it is an image.
  [[nodiscard]] std::optional<Error> error_of(std::int64_t index) const;

 private:
  /// False for a file that is skipped.
  [[nodiscard]] bool try_read(std::int64_t index, float* sample) const;
  /// In a handler: keeps an error that is no reason to stop, and throws any
  /// other again.
  void keep(std::int64_t index, const Exception& exception) const;
  [[nodiscard]] Image decoded(std::int64_t index, std::int64_t min_side) const;
  [[nodiscard]] std::vector<std::uint8_t> planes_of(
      const Image& image,
      const std::string& path) const;

  std::vector<std::string> paths_;
  PixelFormat format_;
  Transform transform_;
  OnBadImage on_bad_image_;
  FileSystem& fs_;
  mutable std::mutex mutex_;
  // By index; guarded by `mutex_`.
  mutable std::map<std::int64_t, Error> errors_;
};

} // namespace lockstep::internal
