// SPDX-License-Identifier: BSD-3-Clause
//
// Datasets by name, for command lines. docs/data.md tells what each kind reads.
//   const auto data = open_dataset("fashion-mnist", ""); // data.train, .test
//   auto pictures = open_dataset("folder", "animals", {.image_size = 64});
//   auto masks = open_dataset(dataset_in("cells"), "cells");
//
// FashionMNIST and MNIST: 60,000 training and 10,000 test images of 28 x 28
// grey pixels in 10 classes. Files are never downloaded.
//   auto train = fashion_mnist("", {.train = true});  // Debian's package
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
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"

#pragma GCC visibility push(default)
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

/// Read-only bytes. Ownership: shared; a mapped file or a decoded buffer.
struct SharedBytes {
  std::shared_ptr<const std::uint8_t> data = {};
  /// Units: bytes.
  std::uint64_t size = 0;
};

/// Images and labels as files hold them.
struct LabelledImages {
  ImageShape shape = {};
  /// Shape: [N, C, H, W] uint8, row-major.
  SharedBytes pixels = {};
  /// Shape: [N] uint8.
  SharedBytes labels = {};
  std::int64_t num_classes = 0;
};

/// A `Dataset` of `LabelledImages`: bytes in memory, transformed when they are
/// read.
class ImageDataset : public Dataset {
 public:
  /// Errors: throws kInvalidArgument for a wrong transform, for pixels and
  /// labels of different counts, and for a label that is no class.
  ImageDataset(LabelledImages images, const TransformOptions& transform);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] PixelFormat pixel_format() const override;
  [[nodiscard]] std::uint64_t digest() const override;
  /// Errors: throws kInvalidArgument for an index outside the dataset.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override;
  void read_targets(std::span<const std::int64_t> indices, TargetRows targets)
      const override;

  /// The raw data.
  [[nodiscard]] const LabelledImages& images() const {
    return images_;
  }

 private:
  LabelledImages images_;
  Transform transform_;
};

/// Folder of Debian's package dataset-fashion-mnist.
inline constexpr std::string_view kFashionMnistFolder =
    "/usr/share/datasets/fashion-mnist";

/// Which part, and how it is read.
struct MnistOptions {
  /// The training set, or else the test set.
  bool train = true;
  /// Mean and std, when empty, are those of the dataset: 0.2860 and 0.3530
  /// for FashionMNIST, 0.1307 and 0.3081 for MNIST.
  TransformOptions transform = {};
  /// Where files are; null: the file system of this machine.
  FileSystem* fs = nullptr;
};

/// Reads FashionMNIST from `directory`, or from `kFashionMnistFolder` if it is
/// empty. Looks for `train-images-idx3-ubyte` and its three siblings, plain
/// or `.gz`, in the folder itself, then in the sub-folders `raw`,
/// `FashionMNIST/raw` (torchvision's layout) and `FashionMNIST`.
/// Errors: throws kNotFound (folder or file; the message names what was looked
/// for), kIo, and kCorrupt or kUnsupported (path and offset set) for a file
/// that is cut, foreign or does not fit the other one.
std::shared_ptr<ImageDataset> fashion_mnist(
    const std::string& directory = "",
    const MnistOptions& options = {});

/// The same for MNIST; there is no default folder. Sub-folders: `raw`,
/// `MNIST/raw`, `MNIST`.
std::shared_ptr<ImageDataset> mnist(
    const std::string& directory,
    const MnistOptions& options = {});

/// Names that `open_dataset` knows, sorted.
std::vector<std::string> dataset_names();

/// Whether a dataset of that name may consist of image files, which can be
/// resized, augmented and cached; false for an unknown name.
bool may_have_image_files(std::string_view name);

/// How a dataset is read.
struct DatasetOptions {
  /// What is random in it is for training only.
  TransformOptions transform = {};
  /// Of image files, for training only, too; its seed is that of `transform`.
  Augment augment = {};
  /// Of image files: sides of the images. Units: pixels.
  std::int64_t image_size = ImageFolderOptions().size;
  /// Of data without parts of their own.
  SplitOptions split = {};
  /// Of image files: leaves out those that cannot be decoded, with masks
  /// (`DatasetParts::bad_files`). Off: the first one is an error.
  bool skip_bad_images = false;
  /// Of image files: where their pixels stay.
  ImageCache cache = ImageCache::kNone;
  /// As `ImageFolderOptions::cache_folder`.
  std::string cache_folder = {};
  /// Of "csv": the columns to predict, with commas between; empty: the last
  /// one, or with paths of images all others.
  std::string target = {};
  /// Of "csv" and "arrays": what targets are, whatever they look like; kNone:
  /// whole numbers and texts are classes, other numbers values.
  TargetKind targets = TargetKind::kNone;
};

/// What `open_dataset` gives.
struct DatasetParts {
  std::shared_ptr<Dataset> train = {};
  std::shared_ptr<Dataset> test = {};
  /// What was decided by looking at the data, for people.
  std::vector<std::string> notes = {};
  /// With `skip_bad_images`: what was left out, each file's error.
  std::vector<Error> bad_files = {};
  /// Samples are image files: `sample_name` is the path.
  bool has_files = false;
};

/// Opens both parts of a dataset. `directory` may be a file (csv, arrays);
/// empty means the place where the system installs the data. The samples of
/// "folder" come in a mixed order, the same each time. Errors: throws
/// kInvalidArgument for an unknown name (with the nearest one as hint);
/// kNotFound (E_NO_DATA) for a folder without such data; kMismatch (E_LABEL)
/// for a label that is no class, (E_MASK_PAIR, E_MASK_SIZE, E_DATA_SHAPE) for
/// parts that do not fit; kCorrupt (E_CSV, E_DATA_FILE); and what
/// `fashion_mnist` and `image_folders` say.
DatasetParts open_dataset(
    std::string_view name,
    const std::string& directory,
    const DatasetOptions& options = {});

/// The dataset that a folder or file holds by its looks, a name for
/// `open_dataset`; empty for anything else. FashionMNIST and MNIST are told
/// from other IDX files by the first labels.
std::string dataset_in(
    const std::string& directory,
    FileSystem& fs = real_fs());

/// The same of a path that must hold one. Errors: throws kNotFound (E_NO_DATA)
/// for a path that is not there, and for one that looks like no data set.
std::string dataset_at(const std::string& path);

} // namespace lockstep
#pragma GCC visibility pop
