// SPDX-License-Identifier: BSD-3-Clause
//
// FashionMNIST and MNIST: 60,000 training and 10,000 test images of 28 x 28
// grey pixels in 10 classes. Files are never downloaded.
//   auto train = fashion_mnist("", {.train = true});  // Debian's package
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

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

} // namespace lockstep
