// SPDX-License-Identifier: BSD-3-Clause
//
// The records of a damaged archive by both of its witnesses: the local headers
// and the directory at the end, which may be that of another file.
//   auto found = recover_listed_records(source, limits);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// What is left of an archive. Names with root.
struct ListedRecords {
  /// For `ZipReader::recovered`.
  std::vector<ZipRecord> records = {};
  /// All names, also those of cut records.
  std::vector<std::string> names = {};
  /// Records of another file, over which this one was written in part.
  std::vector<std::string> foreign = {};
  /// The file ends with a directory that lists its pickle.
  bool has_directory = false;
};

/// Takes names, sizes and checksums from the directory where it lists a sound
/// `data.pkl` or none is sound, else from the local headers: without what the
/// directory lists behind the last record that it does not know.
/// Errors: kIo; kUnsafe (E_LIMIT).
Result<ListedRecords> recover_listed_records(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits = {});

/// What lies in front of the archive that the directory at the end describes,
/// if all its offsets are too small by that; 0 if not. Units: bytes.
/// Errors: kIo.
Result<std::uint64_t> bytes_before_archive(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits = {});

} // namespace lockstep::ckpt
