// SPDX-License-Identifier: BSD-3-Clause
//
// Which files below a folder are images, and which are images that are not
// read.
//   ForeignImages foreign;
//   const auto paths = images_below(fs, "photos", foreign);
//   foreign.warn();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::internal {

/// Images of formats that torchvision reads and `read_image` does not: they
/// are passed over, and counted.
class ForeignImages {
 public:
  /// Counts the file if its name is one of such an image: .bmp, .gif, .pgm,
  /// .ppm, .tif, .tiff.
  void add(const std::string& path);
  /// A warning of LibTorch that tells how many there were; none of none.
  void warn() const;

 private:
  std::int64_t count_ = 0;
  std::string first_ = {};
};

/// Paths of all images below `directory` (`has_image_ending`): folder by folder
/// in the order of their paths, as torchvision lists them. What begins with a
/// dot is left out. A folder is gone through once, whatever links lead to it.
/// Errors: throws kIo for a folder that cannot be listed.
std::vector<std::string> images_below(
    FileSystem& fs,
    const std::string& directory,
    ForeignImages& foreign);

} // namespace lockstep::internal
