// SPDX-License-Identifier: BSD-3-Clause
//
// The pickles of CIFAR, through the reader of checkpoints, which executes
// nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::internal {

struct CifarBatch {
  /// Shape: [N, pixels] uint8.
  std::shared_ptr<const std::string> pixels = {};
  std::vector<std::int64_t> labels = {};
};

/// A dict with an array of bytes "data", of which each sample has `pixels`, and
/// a list of labels.
/// Errors: throws kNotFound, kIo, kCorrupt and kUnsafe of the reader, kCorrupt
/// (E_DATA_FILE) for a pickle of something else.
CifarBatch read_cifar_pickle(
    FileSystem& fs,
    const std::string& path,
    std::string_view label_key,
    std::int64_t pixels);

/// The list of texts `key` of a dict. Errors: as above.
std::vector<std::string>
read_cifar_names(FileSystem& fs, const std::string& path, std::string_view key);

} // namespace lockstep::internal
