// SPDX-License-Identifier: BSD-3-Clause
//
// Both parts of data sets of image files.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/internal/file_dataset.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// The data sets of one list of files, which is split, or of two. Paths count
/// from `root` for the split.
/// Errors: throws as `FileDataset`; kInvalidArgument for a split that is none.
DatasetParts file_parts(
    std::vector<FileSamples> parts,
    const std::string& root,
    const DatasetOptions& options);

/// What `options` says of image files.
ImageFolderOptions image_options(const DatasetOptions& options);

} // namespace lockstep::internal
