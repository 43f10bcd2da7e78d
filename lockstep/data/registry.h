// SPDX-License-Identifier: BSD-3-Clause
//
// Datasets by name, for command lines.
//   const auto [train, test] = open_dataset("fashion-mnist", "");
//   auto pictures = open_dataset("folder", "animals", {.image_size = 64});
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/image_folder.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

/// Names that `open_dataset` knows, sorted.
std::vector<std::string> dataset_names();

/// How a dataset is read.
struct DatasetOptions {
  /// What is random in it is for training only.
  TransformOptions transform = {};
  /// Of "folder", for training only, too; its seed is that of `transform`.
  Augment augment = {};
  /// Of "folder": sides of the images. Units: pixels.
  std::int64_t image_size = ImageFolderOptions().size;
  /// Of "folder", where it has no parts of its own.
  SplitOptions split = {};
};

struct DatasetParts {
  std::shared_ptr<Dataset> train = {};
  std::shared_ptr<Dataset> test = {};
};

/// Opens both parts of a dataset. An empty `directory` means the place where
/// the system installs it. The samples of "folder" come in a mixed order, the
/// same each time.
/// Errors: throws kInvalidArgument for an unknown name (with the nearest one
/// as hint), and what the dataset itself throws, see fashion_mnist.h and
/// image_folder.h.
DatasetParts open_dataset(
    std::string_view name,
    const std::string& directory,
    const DatasetOptions& options = {});

/// The dataset that a folder holds by its looks: "folder" for pictures in
/// folders, one for each class; empty for anything else.
std::string dataset_in(
    const std::string& directory,
    FileSystem& fs = real_fs());

} // namespace lockstep
