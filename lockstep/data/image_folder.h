// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures in folders, one folder for each class, as torchvision's ImageFolder:
//   animals/train/cat/1.jpg   animals/train/dog/7.png   animals/val/cat/2.jpg
//   const auto [train, val] = image_folders("animals", {.size = 64});
//   Loader loader(train, {.batch_size = 32, .workers = 4, .shuffle = true});
// What a network will see of them, as a file:
//   write_png("seen.png", augmented_sheet(*train));
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"

namespace lockstep {

namespace internal {
class PictureReader;
} // namespace internal

/// Where decoded pixels stay after they were made: resized ones, and where
/// pictures are augmented, those that the augmentation begins with. The bits of
/// the samples are the same.
enum class ImageCache {
  kNone,
  /// In the memory of this process.
  kRam,
  /// In a mapped file, which later runs with the same files use, too.
  kDisk
};

/// How the pictures of a folder become samples.
struct ImageFolderOptions {
  /// Units: pixels of both sides. The shorter side is resized to it (bilinear,
  /// antialiased), then the middle is cut out, as torchvision's `Resize` and
  /// `CenterCrop` do.
  std::int64_t size = 224;
  /// `min_side` is decided by `size` and `augment`.
  DecodeOptions decode = {};
  /// Mean and std, when empty, are ImageNet's, for grey images their means.
  /// Its seed is that of `augment`, too.
  TransformOptions transform = {};
  /// What is done to each picture at random, in place of the resizing above;
  /// its last step is followed by `transform`. Without steps: nothing.
  Augment augment = {};
  /// Leaves out files that cannot be decoded: all are decoded once when the
  /// folder is opened. Off: the first one ends the reading with its error.
  bool skip_bad_images = false;
  ImageCache cache = ImageCache::kNone;
  /// Of `kDisk`; empty: `$XDG_CACHE_HOME/lockstep/images`, or
  /// `~/.cache/lockstep/images`.
  std::string cache_folder = {};
  /// Where files are; null: the file system of this machine.
  FileSystem* fs = nullptr;
};

/// A picture and its class.
struct ImageSample {
  std::string path = {};
  std::int64_t label = 0;
};

/// A `Dataset` of picture files, which are decoded when they are read.
class ImageFolder : public Dataset {
 public:
  /// `classes` are the labels' names, `bad_images` what was left out before.
  /// Errors: throws kInvalidArgument for a wrong option, as `Augmenter`, and
  /// for a label that is no class; what the cache throws (pixels that the
  /// memory or the disk cannot hold).
  ImageFolder(
      std::vector<ImageSample> samples,
      std::vector<std::string> classes,
      ImageFolderOptions options,
      std::vector<Error> bad_images = {});

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] PixelFormat pixel_format() const override;
  /// Errors: as `read_image`, with the file's path; kInvalidArgument for an
  /// index outside the dataset.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override;
  void read_targets(std::span<const std::int64_t> indices, TargetRows targets)
      const override;

  /// What `read` gives of sample `index` in that epoch, in pixels again: what a
  /// network sees. Errors: as `read`.
  [[nodiscard]] Image picture(std::int64_t index, std::int64_t epoch) const;
  /// The same without what is random.
  [[nodiscard]] Image plain_picture(std::int64_t index) const;

  /// Sorted, as Python sorts them: label i is class_names()[i].
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return classes_;
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override;
  [[nodiscard]] std::uint64_t digest() const override;
  [[nodiscard]] const std::vector<ImageSample>& samples() const {
    return samples_;
  }
  /// What was left out, with `skip_bad_images`: each file's error. The two
  /// parts of a folder that was split both have those of the whole.
  [[nodiscard]] const std::vector<Error>& bad_images() const {
    return bad_images_;
  }

 private:
  std::vector<ImageSample> samples_;
  std::vector<std::string> classes_;
  ImageFolderOptions options_;
  Transform transform_;
  std::vector<Error> bad_images_;
  std::shared_ptr<const internal::PictureReader> pictures_;
};

/// The classes of `directory`, one folder each, with all images below them
/// (`has_image_ending`), sorted. Files and folders whose names begin with a dot
/// are passed over; a warning of LibTorch tells how many images of other
/// formats
/// (.bmp, .gif, .tif ...) are.
/// Errors: throws kNotFound (E_NO_DATA) for a folder without classes and for a
/// class without images; kIo.
std::shared_ptr<ImageFolder> image_folder(
    const std::string& directory,
    const ImageFolderOptions& options = {});

/// True if `directory`, or its folder `train`, has a folder with an image in
/// it: a look, no reading.
bool holds_image_classes(
    const std::string& directory,
    FileSystem& fs = real_fs());

/// Which samples are for validation, where a folder does not say it.
struct SplitOptions {
  /// Share of each class, at least one image of it.
  double val_share = 0.2;
  std::int64_t seed = 0;
};

/// Training and validation parts of `directory`: its folders `train` (or
/// `training`) and `val` (or `valid`, `validation`, `dev`, `test`) if it has
/// both; else what is in `train`, or all its images, split class by class. A
/// file that is added later moves one other at most from part to part. Random
/// transforms are for training only.
/// Errors: as `image_folder`; kMismatch (E_CLASSES) for parts with different
/// classes; kInvalidArgument for a share outside (0, 1), and for a class with
/// one image.
std::pair<std::shared_ptr<ImageFolder>, std::shared_ptr<ImageFolder>>
image_folders(
    const std::string& directory,
    const ImageFolderOptions& options = {},
    const SplitOptions& split = {});

/// What a sheet of a folder's pictures shows.
struct SheetOptions {
  /// Pictures at most, from all over the folder; each is a row.
  std::int64_t samples = 8;
  /// Columns behind the first one: what the network sees in so many epochs.
  std::int64_t epochs = 7;
  std::int64_t first_epoch = 0;
};

/// A row for each picture: first as it is, then as `read` gives it, epoch by
/// epoch. Errors: as `read`; kInvalidArgument for no samples.
Image augmented_sheet(
    const ImageFolder& folder,
    const SheetOptions& options = {});

} // namespace lockstep
