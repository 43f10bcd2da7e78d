// SPDX-License-Identifier: BSD-3-Clause
//
// Finds and checks the directory of a zip file, for ZipReader and recovery: the
// end record, the zip64 records, the central entries and each local header.
//   auto directory = read_zip_directory(*source, limits);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt::internal {

/// An error of the zip reader; `offset` counts from the start of the file.
Error zip_error(
    ErrorCode code,
    std::string detail,
    std::string message,
    std::optional<std::uint64_t> offset = {},
    std::string_view record = {},
    std::string hint = {});

/// Where the end records say that the directory is. Units: bytes.
struct ZipEnd {
  std::uint64_t count = 0;
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_bytes = 0;
  /// Bytes after the archive.
  std::uint64_t trailing_bytes = 0;
};

/// Finds the end of central directory, 64-bit or not. Errors as
/// `ZipReader::open`.
Result<ZipEnd> read_zip_end(ByteSource& source, const Limits& limits);

/// A central entry: the record (its name still with root, `data_offset` still
/// 0) and what else must agree with the local header.
struct ZipEntry {
  ZipRecord record = {};
  std::uint16_t flags = 0;
  std::uint16_t disk = 0;
};

/// An entry that `zip -r` and `shutil.make_archive` write for a folder: a name
/// that ends with a slash, no bytes. Readers pass it over.
bool is_folder(const ZipRecord& record);

/// False if the content is larger than a payload of that size may become: by
/// the limit, and by what Deflate can give at all.
bool is_within_ratio(const ZipRecord& record, const Limits& limits);

/// Parses the central directory. Errors as `ZipReader::open`.
Result<std::vector<ZipEntry>>
read_zip_entries(ByteSource& source, const ZipEnd& end, const Limits& limits);

/// Compares the local header of each entry with it and sets `data_offset`.
Status check_local_headers(
    ByteSource& source,
    const ZipEnd& end,
    std::vector<ZipEntry>& entries);

/// Refuses records that share bytes, and bytes before the first one; but for a
/// record there that a later one of the same name has replaced.
Status check_overlaps(ByteSource& source, const std::vector<ZipEntry>& entries);

} // namespace lockstep::ckpt::internal
