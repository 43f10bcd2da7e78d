// SPDX-License-Identifier: BSD-3-Clause
//
// Writes PyTorch's zip layout to a file in one pass: stored records, payloads
// aligned to 64 bytes, checksums after the data, zip64 end records.
//   ZipWriter zip(file, "checkpoint");
//   zip.add("data.pkl", bytes);  ...  zip.finish();
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/zip/serialization_id.h"

namespace lockstep::ckpt {

/// A record to come, for `zip_file_bytes`.
struct PlannedRecord {
  /// Without the archive's root.
  std::string name = {};
  /// Units: bytes.
  std::uint64_t size = 0;
};

/// Bytes of another file that become a record, with the checksum that is known
/// for them.
struct StoredRange {
  /// Units: bytes.
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
};

/// What the directory says of one record.
struct ZipEntryPlan {
  /// With root and slash.
  std::string name = {};
  /// Units: bytes.
  std::uint64_t header_offset = 0;
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
};

/// Size of the file that `ZipWriter` makes of these records, with the
/// serialization id it adds. Units: bytes.
std::uint64_t zip_file_bytes(
    std::string_view root,
    std::span<const PlannedRecord> records);

/// Ownership: the file must outlive the writer. Threads: one at a time.
class ZipWriter {
 public:
  /// Takes the next bytes of a record.
  using Sink = std::function<Status(ByteSpan)>;
  /// Gives the bytes of a record, piece by piece.
  using Fill = std::function<Status(const Sink&)>;

  /// Without a root, names stay as they are and no serialization id is added.
  ZipWriter(WritableFile& file, std::string root);

  /// Appends a record; names must be new. Errors: kIo.
  Status add(std::string_view name, ByteSpan payload);

  /// Appends a record of `size` bytes that `fill` gives.
  /// Errors: kIo; those of `fill`; kInternal if it gives another number.
  Status add(std::string_view name, std::uint64_t size, const Fill& fill);

  /// Appends a record whose bytes lie in `source`; they are not looked at.
  /// Errors: kIo; as `WritableFile::copy_from`.
  Status add_stored(
      std::string_view name,
      ReadableFile& source,
      const StoredRange& range);

  /// Appends the serialization id and the directory. Errors: kIo.
  Status finish();

  /// Units: bytes produced so far.
  [[nodiscard]] std::uint64_t position() const noexcept {
    return position_;
  }

 private:
  using Entry = ZipEntryPlan;

  Entry begin(std::string_view name, std::uint64_t size);
  Status end(std::string_view name, Entry entry);
  void append(std::string_view bytes);
  Status append_payload(ByteSpan payload, std::uint32_t& crc);
  void append_block(ByteSpan block, std::uint32_t& crc);
  Status flush();

  WritableFile& file_;
  std::string root_;
  std::vector<Entry> entries_;
  SerializationId id_;
  // Headers and small payloads gather here; large ones bypass it.
  std::string buffer_;
  std::uint64_t position_ = 0;
};

} // namespace lockstep::ckpt
