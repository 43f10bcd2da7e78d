// SPDX-License-Identifier: BSD-3-Clause
//
// Builds small zip files by hand, sound or broken on purpose.
//   ZipBytes zip;
//   zip.add("a/data.pkl", "xyz", {.local_name = "a/other"});
//   std::string bytes = zip.finish();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ckpt/zip/crc32.h"

namespace lockstep::ckpt {

/// Appends `value` as a little-endian integer of type T.
template <class T>
void put_le(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(
        static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF));
  }
}

/// What an entry says instead of the truth.
struct EntryLies {
  std::optional<std::string> local_name = {};
  std::optional<std::uint32_t> crc = {};
  std::optional<std::uint32_t> local_crc = {};
  std::optional<std::uint32_t> size = {};
  std::optional<std::uint32_t> packed_size = {};
  std::optional<std::uint32_t> header_offset = {};
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  /// Where the record is said to be, of an archive of several disks.
  std::uint16_t disk = 0;
  /// Zip64 extra field of the central entry.
  std::string extra = {};
};

/// What the end record says instead of the truth.
struct EndLies {
  std::string comment = {};
  std::int64_t directory_shift = 0;
};

class ZipBytes {
 public:
  void add(
      const std::string& name,
      const std::string& payload,
      const EntryLies& lies = {}) {
    const auto offset = static_cast<std::uint32_t>(bytes_.size());
    const auto size = static_cast<std::uint32_t>(payload.size());
    const std::uint32_t crc = lies.crc.value_or(crc32(as_byte_span(payload)));
    const std::string local = lies.local_name.value_or(name);
    put_le<std::uint32_t>(bytes_, 0x04034b50);
    put_common(
        bytes_,
        lies,
        lies.local_crc.value_or(crc),
        size,
        lies.size.value_or(size));
    put_le<std::uint16_t>(bytes_, static_cast<std::uint16_t>(local.size()));
    put_le<std::uint16_t>(bytes_, 0);
    bytes_ += local + payload;

    put_le<std::uint32_t>(directory_, 0x02014b50);
    put_le<std::uint16_t>(directory_, 0);
    put_common(
        directory_,
        lies,
        crc,
        lies.packed_size.value_or(size),
        lies.size.value_or(size));
    put_le<std::uint16_t>(directory_, static_cast<std::uint16_t>(name.size()));
    put_le<std::uint16_t>(
        directory_,
        static_cast<std::uint16_t>(lies.extra.size()));
    put_le<std::uint16_t>(directory_, 0);
    put_le<std::uint16_t>(directory_, lies.disk);
    directory_.append(6, '\0');
    put_le<std::uint32_t>(directory_, lies.header_offset.value_or(offset));
    directory_ += name + lies.extra;
    ++count_;
  }

  [[nodiscard]] std::string finish(const EndLies& lies = {}) const {
    std::string out = bytes_ + directory_;
    put_le<std::uint32_t>(out, 0x06054b50);
    put_le<std::uint32_t>(out, 0);
    put_le<std::uint16_t>(out, count_);
    put_le<std::uint16_t>(out, count_);
    put_le<std::uint32_t>(out, static_cast<std::uint32_t>(directory_.size()));
    put_le<std::uint32_t>(
        out,
        static_cast<std::uint32_t>(
            static_cast<std::int64_t>(bytes_.size()) + lies.directory_shift));
    put_le<std::uint16_t>(out, static_cast<std::uint16_t>(lies.comment.size()));
    return out + lies.comment;
  }

 private:
  static void put_common(
      std::string& out,
      const EntryLies& lies,
      std::uint32_t crc,
      std::uint32_t packed_size,
      std::uint32_t size) {
    put_le<std::uint16_t>(out, 0);
    put_le<std::uint16_t>(out, lies.flags);
    put_le<std::uint16_t>(out, lies.method);
    put_le<std::uint32_t>(out, 0);
    put_le<std::uint32_t>(out, crc);
    put_le<std::uint32_t>(out, packed_size);
    put_le<std::uint32_t>(out, size);
  }

  std::string bytes_;
  std::string directory_;
  std::uint16_t count_ = 0;
};

} // namespace lockstep::ckpt
