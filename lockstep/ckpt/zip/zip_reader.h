// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the zip container of checkpoints (stored or deflated, zip64) and
// refuses what two parsers could see differently: duplicate names, overlaps,
// local headers that contradict the directory, bytes before the archive.
// Nothing in it is ever used as a path.
//   auto zip = ZipReader::open(source, limits);
//   const ZipRecord* record = zip->find("data.pkl");
//   auto bytes = zip->read(*record, scratch);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

/// One entry of the central directory. Units: bytes.
struct ZipRecord {
  /// Without the archive's root: "data/0".
  std::string name = {};
  /// First byte of the payload in the file.
  std::uint64_t data_offset = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  /// 0 stored, 8 deflated.
  std::uint16_t method = 0;
  std::uint64_t header_offset = 0;
};

/// What an archive must look like.
enum class ZipForm {
  /// One folder holds every record; names differ in more than letter case, for
  /// PyTorch ignores it.
  kRooted,
  /// Any names (npz).
  kFlat,
};

/// True if a record may have this name: no path that leads out of a folder, at
/// most 4 KiB.
bool is_record_name(std::string_view name);

/// The checked directory of an archive; movable, not copyable.
/// Threads: const calls are safe.
class ZipReader {
 public:
  ZipReader(ZipReader&&) noexcept = default;
  ZipReader& operator=(ZipReader&&) noexcept = default;
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  ~ZipReader() = default;

  /// Reads and checks directory and local headers; payloads are not touched.
  /// Errors (detail names in docs/errors.md): kCorrupt, kUnsupported
  /// (encryption, compression methods), kUnsafe (limits), kIo. `path` is left
  /// empty: callers know it.
  static Result<ZipReader> open(
      std::shared_ptr<ByteSource> source,
      const Limits& limits = {},
      ZipForm form = ZipForm::kRooted);

  /// An archive of records that were found without a directory: names without
  /// the folder of the first one, of equal names the last; what does not fit
  /// is left out. For rescuing and scanning only.
  static ZipReader recovered(
      std::shared_ptr<ByteSource> source,
      std::vector<ZipRecord> records,
      const Limits& limits = {});

  /// In the order of the directory.
  [[nodiscard]] std::span<const ZipRecord> records() const noexcept {
    return records_;
  }
  /// By name without root, letter case counts; null if absent.
  [[nodiscard]] const ZipRecord* find(std::string_view name) const noexcept;
  /// The same in any letter case, as LibTorch finds records.
  [[nodiscard]] const ZipRecord* find_in_any_case(std::string_view name) const;
  /// Folder that holds every record: "checkpoint.pth"; empty in a flat one.
  [[nodiscard]] const std::string& root() const noexcept {
    return root_;
  }
  [[nodiscard]] CrcState crc_state() const noexcept {
    return crc_state_;
  }
  /// What is odd but harmless: W_TRAILING, W_CRC_ABSENT.
  [[nodiscard]] const std::vector<Warning>& warnings() const noexcept {
    return warnings_;
  }
  [[nodiscard]] const std::shared_ptr<ByteSource>& source() const noexcept {
    return source_;
  }

  /// Content of a record: stored ones as `ByteSource::view`, deflated ones
  /// inflated into `scratch`. The CRC is not compared.
  /// Errors: kIo; kCorrupt (E_DEFLATE); kUnsafe (E_LIMIT).
  [[nodiscard]] Result<ByteSpan> read(
      const ZipRecord& record,
      std::vector<std::byte>& scratch) const;

  /// The same, and the bytes that are given have the stored CRC.
  /// Errors: as `read`; kCorrupt (E_CRC).
  [[nodiscard]] Result<ByteSpan> read_checked(
      const ZipRecord& record,
      std::vector<std::byte>& scratch) const;

  /// Gives the content of a stored record in blocks; with `check_crc`, an error
  /// after the last one says that they were damaged.
  /// Errors: kIo; kCorrupt (E_CRC); what `visit` returned.
  [[nodiscard]] Status stream(
      const ZipRecord& record,
      bool check_crc,
      const std::function<Status(ByteSpan block)>& visit) const;

  /// Compares the content with the stored CRC, in blocks; does nothing for a
  /// record without one. Errors: kIo; kCorrupt (E_CRC, E_DEFLATE).
  [[nodiscard]] Status check_crc(const ZipRecord& record) const;

  /// True if the archive stores a CRC for `record`.
  [[nodiscard]] bool has_crc(const ZipRecord& record) const noexcept;

 private:
  ZipReader() = default;
  void index_names();
  void allow_inflated();

  std::shared_ptr<ByteSource> source_;
  std::shared_ptr<Budget> budget_;
  std::vector<ZipRecord> records_;
  // Places in `records_` by name. Not by hash: names in a file can be made to
  // collide.
  std::map<std::string_view, std::size_t> index_;
  std::string root_;
  CrcState crc_state_ = CrcState::kPresent;
  std::vector<Warning> warnings_;
};

} // namespace lockstep::ckpt
