// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the records of a zip file by their local headers, for files whose
// directory is lost: cut downloads, interrupted saves. What is found may be
// wrong; its CRC decides.
//   auto found = recover_zip_records(*source);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// A local header whose payload does not end where it should.
struct LostRecord {
  /// With the archive's root.
  std::string name = {};
  /// Units: bytes from the start of the file.
  std::uint64_t header_offset = 0;
};

/// What the local headers tell.
struct RecoveredRecords {
  /// In the file's order; names with root.
  std::vector<ZipRecord> records = {};
  /// Records that were cut.
  std::vector<LostRecord> lost = {};
};

/// Units: bytes in front of the first record that lies in a folder, as those of
/// PyTorch do, at most 64 KiB; nothing if there is none. Errors: kIo.
Result<std::optional<std::uint64_t>> find_zip_start(ByteSource& source);

/// Where the file holds end records: one, or several if archives follow each
/// other. Units: bytes from the start. Errors: kIo.
Result<std::vector<std::uint64_t>> find_end_records(
    ByteSource& source,
    const Limits& limits = {});

/// Walks through the file from one local header to the next; after damage it
/// searches for the next one. Sizes come from the header or from the
/// descriptor after the payload. Errors: kIo; kUnsafe (E_LIMIT).
Result<RecoveredRecords> recover_zip_records(
    ByteSource& source,
    const Limits& limits = {});

} // namespace lockstep::ckpt
