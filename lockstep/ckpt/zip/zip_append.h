// SPDX-License-Identifier: BSD-3-Clause
//
// Replaces small records of a zip checkpoint in place: the new ones and a new
// directory go behind the old end, whatever the size of the rest. A kill or a
// power cut at any moment leaves the old archive or the new one, for PyTorch's
// reader too; docs/formats/edit_in_place.md says how.
//   replace_records(fs, "m.pt", {{"data.pkl", pickle}}, {.file_bytes = n});
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/options.h"

namespace lockstep::ckpt {

/// What a record of that name (without root) will hold.
struct NewRecord {
  std::string name = {};
  std::string bytes = {};
};

/// How `replace_records` works.
struct AppendOptions {
  /// Units: bytes; size of the file that the caller has looked at. Another one
  /// means that somebody changed it meanwhile.
  std::uint64_t file_bytes = 0;
  Limits limits = {};
};

/// Replaces records of the archive `path`, and its serialization id. Returns
/// the number of bytes by which the file grew.
/// Errors: kUnsupported (E_NOT_IN_PLACE) for an archive that does not end with
/// its end record, or lacks a record; kIo (E_LOCKED, E_CHANGED, E_NO_SPACE).
/// Up to the last write a failure puts the old length back; after it the file
/// holds the new records, which a power cut may take back.
Result<std::uint64_t> replace_records(
    FileSystem& fs,
    const std::string& path,
    std::span<const NewRecord> records,
    const AppendOptions& options);

} // namespace lockstep::ckpt
