// SPDX-License-Identifier: BSD-3-Clause
//
// FashionMNIST and MNIST: 60,000 training and 10,000 test images of 28 x 28
// grey pixels in 10 classes. Files are never downloaded.
//   auto train = fashion_mnist("", {.train = true});  // Debian's package
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/data/image_dataset.h"

namespace lockstep {

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
