// SPDX-License-Identifier: BSD-3-Clause
//
// Which image has which mask, in the layouts of segmentation data.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::internal {

/// Images and their masks.
struct MaskPairs {
  std::vector<std::string> images = {};
  std::vector<std::string> masks = {};
};

/// What a folder has.
struct MaskFolders {
  /// One part, which is to be split, or training and validation.
  std::vector<MaskPairs> parts = {};
  /// A line for each class, if there is a file classes.txt.
  std::vector<std::string> classes = {};
};

/// Whether `folder` has one of the layouts: images beside masks, in each part,
/// or with parts in each, or that of VOC. A look, no reading.
bool has_mask_folders(const std::string& folder, FileSystem& fs);

/// Pairs of files whose names are equal but for the ending (a mask may have
/// "_mask" behind). VOC's lists say which of its images have masks.
/// Errors: throws kNotFound (E_NO_DATA) for a folder of another layout, and for
/// a list's file that is missing; kMismatch (E_MASK_PAIR) for images without
/// masks and masks without images, by name.
MaskFolders find_masks(const std::string& folder, FileSystem& fs);

} // namespace lockstep::internal
