// SPDX-License-Identifier: BSD-3-Clause
//
// Which images a command line means: files, folders, lists of paths.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::train {

/// An image, and what its results may be called.
struct ListedImage {
  std::string path = {};
  /// Of a file in a folder that was named: the path below it; else the file's
  /// name.
  std::string name = {};

  friend bool operator==(const ListedImage&, const ListedImage&) = default;
};

/// Files in the order of `words`; a folder stands for all images below it
/// (`images_below`), sorted by name; "-" for the paths that `read_list` gives,
/// one a line. Whether a file is there, its reading says. A warning of LibTorch
/// tells how many images of other formats the folders have.
/// Errors: throws kNotFound (E_NO_DATA) for a folder without images, and for no
/// image at all; kInvalidArgument for a second "-".
std::vector<ListedImage> list_images(
    std::span<const std::string> words,
    const std::function<std::string()>& read_list,
    FileSystem& fs = real_fs());

} // namespace lockstep::train
