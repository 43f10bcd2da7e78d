// SPDX-License-Identifier: BSD-3-Clause
//
// Datasets by name, for command lines.
//   auto test = open_dataset("fashion-mnist", "", {.train = false});
//   auto pictures = open_dataset("folder", "animals", {.image_size = 64});
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/image_folder.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

/// Names that `open_dataset` knows, sorted.
std::vector<std::string> dataset_names();

/// Which part of a dataset, and how it is read.
struct DatasetOptions {
  /// The part for training, or else the one for testing.
  bool train = true;
  TransformOptions transform = {};
  /// Of "folder": sides of the images. Units: pixels; 0: 224.
  std::int64_t image_size = 0;
  /// Of "folder", where it has no parts of its own.
  SplitOptions split = {};
};

/// Opens a part of a dataset. An empty `directory` means the place where the
/// system installs it.
/// Errors: throws kInvalidArgument for an unknown name (with the nearest one
/// as hint), and what the dataset itself throws, see fashion_mnist.h and
/// image_folder.h.
std::shared_ptr<Dataset> open_dataset(
    std::string_view name,
    const std::string& directory,
    const DatasetOptions& options = {});

/// The dataset that a folder holds by its looks: "folder" for pictures in
/// folders, one for each class; empty for anything else.
std::string dataset_in(
    const std::string& directory,
    FileSystem& fs = real_fs());

} // namespace lockstep
