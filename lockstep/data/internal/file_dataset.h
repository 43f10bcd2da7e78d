// SPDX-License-Identifier: BSD-3-Clause
//
// Image files with any targets: masks in files, classes, values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/picture_reader.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// What the samples of a `FileDataset` are.
struct FileSamples {
  std::vector<std::string> images = {};
  /// The files of masks, one for each image; or empty.
  std::vector<std::string> masks = {};
  /// One class for each image; or empty.
  std::vector<std::int64_t> classes = {};
  /// `value_names` values for each image, one after the other; or empty.
  std::vector<float> values = {};
  std::int64_t num_classes = 0;
  /// Of the classes, or of the values; may be empty.
  std::vector<std::string> names = {};
  /// Units: values of each image.
  std::int64_t values_each = 0;
  /// 255 in masks is class 1.
  bool is_255_one = false;

  /// Those of some samples, the rest as it is.
  [[nodiscard]] FileSamples part(std::span<const std::int64_t> indices) const;
};

/// A `Dataset` of image files, which are decoded when they are read.
class FileDataset : public Dataset {
 public:
  /// `options.skip_bad_images` leaves out what cannot be decoded: `bad_files`.
  /// Errors: as `ImageFolder`.
  FileDataset(FileSamples samples, ImageFolderOptions options);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] TargetFormat target_format() const override;
  [[nodiscard]] std::vector<std::string> class_names() const override;
  [[nodiscard]] PixelFormat pixel_format() const override;
  [[nodiscard]] std::string sample_name(std::int64_t index) const override;
  [[nodiscard]] std::uint64_t digest() const override;
  /// Errors: as `PictureReader::read` and `check_mask`; kInvalidArgument
  /// for an index outside.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override;
  void read_targets(std::span<const std::int64_t> indices, TargetRows targets)
      const override;

  [[nodiscard]] const std::vector<Error>& bad_files() const {
    return bad_files_;
  }

 private:
  [[nodiscard]] PictureFiles files_of(std::int64_t index) const;
  [[nodiscard]] std::shared_ptr<const PictureReader> make_reader(
      ImageCache cache) const;
  [[nodiscard]] bool has_masks() const {
    return !samples_.masks.empty();
  }
  /// Of image and mask.
  void visit_paths(
      std::int64_t index,
      const std::function<void(const std::string& path)>& visit) const;
  [[nodiscard]] FileSystem& files() const {
    return options_.fs == nullptr ? real_fs() : *options_.fs;
  }
  void take_out_bad();
  void put_target(
      std::int64_t index,
      std::size_t at,
      const std::uint8_t* mask,
      TargetRows targets) const;

  FileSamples samples_;
  ImageFolderOptions options_;
  Transform transform_;
  std::vector<Error> bad_files_ = {};
  std::shared_ptr<const PictureReader> pictures_;
};

} // namespace lockstep::internal
