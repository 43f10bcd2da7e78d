// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_recover.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_layout.h"

namespace lockstep::ckpt {
namespace {

using internal::read_le;

// Blocks grow while nothing is found: most records are small.
constexpr std::uint64_t kFirstBlockBytes = 1ULL << 12;
constexpr std::uint64_t kLastBlockBytes = 1ULL << 20;
// How often the whole file may be searched: a hostile one has many headers
// without an end.
constexpr std::uint64_t kMaxSearches = 64;
constexpr std::uint64_t kMaxNameBytes = 4096;
constexpr std::uint16_t kHasDescriptor = 0x0008;
constexpr std::uint64_t kDescriptorBytes = 16;
constexpr std::uint64_t kDescriptor64Bytes = 24;

// Offset of the first `magic` in [from, end) that `accept` takes.
using Accept = std::function<bool(ByteSpan at, std::uint64_t offset)>;

Result<std::optional<std::uint64_t>> find_magic(
    ByteSource& source,
    std::uint64_t from,
    std::uint32_t magic,
    const Accept& accept,
    std::uint64_t& searched) {
  const std::array<std::byte, 4> wanted{
      static_cast<std::byte>(magic & 0xFFU),
      static_cast<std::byte>(magic >> 8U & 0xFFU),
      static_cast<std::byte>(magic >> 16U & 0xFFU),
      static_cast<std::byte>(magic >> 24U)};
  std::vector<std::byte> scratch;
  std::uint64_t block_bytes = kFirstBlockBytes;
  for (std::uint64_t at = from; at < source.size();) {
    // What follows a magic must be in the same view.
    const std::uint64_t length =
        std::min(block_bytes + kLocalBytes, source.size() - at);
    searched += length;
    LOCKSTEP_ASSIGN(const ByteSpan block, source.view(at, length, scratch));
    auto found = block.begin();
    for (;;) {
      found = std::search(found, block.end(), wanted.begin(), wanted.end());
      const auto index = static_cast<std::uint64_t>(found - block.begin());
      if (found == block.end() || index >= block_bytes) {
        break;
      }
      if (accept(block.subspan(index), at + index)) {
        return std::optional(at + index);
      }
      ++found;
    }
    at += block_bytes;
    block_bytes = std::min(2 * block_bytes, kLastBlockBytes);
  }
  return std::optional<std::uint64_t>();
}

// The descriptor's size must be the distance from the payload's start: bytes
// of a tensor do not do that by chance.
struct Descriptor {
  std::uint32_t crc = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t bytes = 0;
};

std::optional<Descriptor> descriptor_at(ByteSpan at, std::uint64_t distance) {
  if (at.size() >= kDescriptor64Bytes &&
      read_le<std::uint64_t>(at, 8) == distance) {
    const auto size = read_le<std::uint64_t>(at, 16);
    if (size == distance) {
      return Descriptor{
          read_le<std::uint32_t>(at, 4),
          distance,
          size,
          kDescriptor64Bytes};
    }
  }
  if (at.size() >= kDescriptorBytes &&
      read_le<std::uint32_t>(at, 8) == distance) {
    return Descriptor{
        read_le<std::uint32_t>(at, 4),
        distance,
        read_le<std::uint32_t>(at, 12),
        kDescriptorBytes};
  }
  return std::nullopt;
}

class Recovery {
 public:
  Recovery(ByteSource& source, const Limits& limits)
      : source_(source), limits_(limits) {}

  Result<RecoveredRecords> run() {
    std::uint64_t at = 0;
    for (;;) {
      LOCKSTEP_ASSIGN(
          const auto header,
          find_magic(source_, at, kLocalMagic, is_plausible, searched_));
      if (!header) {
        return std::move(found_);
      }
      const bool is_costly =
          searched_ / kMaxSearches > source_.size() + kLastBlockBytes;
      if (is_costly ||
          found_.records.size() + found_.lost.size() >= limits_.max_records) {
        return internal::zip_error(
            ErrorCode::kUnsafe,
            "E_LIMIT",
            "the archive has too many records",
            *header);
      }
      LOCKSTEP_ASSIGN(at, read_record(*header));
    }
  }

 private:
  static bool is_plausible(ByteSpan at, std::uint64_t /*offset*/) {
    return at.size() >= kLocalBytes && read_le<std::uint16_t>(at, 26) != 0 &&
           (read_le<std::uint16_t>(at, 8) == 0 ||
            read_le<std::uint16_t>(at, 8) == 8);
  }

  // Gives the offset behind the record, or behind its header if it is lost.
  Result<std::uint64_t> read_record(std::uint64_t header) {
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(
        const ByteSpan fixed,
        source_.view(header, kLocalBytes, scratch));
    const std::uint64_t name_bytes = read_le<std::uint16_t>(fixed, 26);
    const std::uint64_t extra_bytes = read_le<std::uint16_t>(fixed, 28);
    const bool has_descriptor =
        (read_le<std::uint16_t>(fixed, 6) & kHasDescriptor) != 0;
    ZipRecord record{
        .data_offset = header + kLocalBytes + name_bytes + extra_bytes,
        .compressed_size = read_le<std::uint32_t>(fixed, 18),
        .size = read_le<std::uint32_t>(fixed, 22),
        .crc = read_le<std::uint32_t>(fixed, 14),
        .method = read_le<std::uint16_t>(fixed, 8),
        .header_offset = header};
    if (name_bytes > kMaxNameBytes || record.data_offset > source_.size()) {
      return header + kLocalBytes; // no header, or a cut one
    }
    LOCKSTEP_TRY(read_name(record, name_bytes, extra_bytes));
    const bool is_sized = !has_descriptor || record.compressed_size != 0;
    if (!is_sized) {
      return read_until_descriptor(std::move(record));
    }
    if (record.compressed_size > source_.size() - record.data_offset) {
      return lose(std::move(record));
    }
    const std::uint64_t end = record.data_offset + record.compressed_size;
    found_.records.push_back(std::move(record));
    return end;
  }

  Status read_name(
      ZipRecord& record,
      std::uint64_t name_bytes,
      std::uint64_t extra_bytes) {
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(
        const ByteSpan bytes,
        source_.view(
            record.header_offset + kLocalBytes,
            name_bytes + extra_bytes,
            scratch));
    record.name = as_text(bytes.first(name_bytes));
    ByteSpan extra = bytes.subspan(name_bytes);
    while (record.size == kZip64Threshold && extra.size() >= 4) {
      const std::size_t length = read_le<std::uint16_t>(extra, 2);
      if (length > extra.size() - 4) {
        break;
      }
      if (read_le<std::uint16_t>(extra, 0) == kZip64Tag && length >= 16) {
        record.size = read_le<std::uint64_t>(extra, 4);
        record.compressed_size = read_le<std::uint64_t>(extra, 12);
        break;
      }
      extra = extra.subspan(4 + length);
    }
    return {};
  }

  Result<std::uint64_t> read_until_descriptor(ZipRecord record) {
    const std::uint64_t start = record.data_offset;
    std::optional<Descriptor> descriptor;
    LOCKSTEP_ASSIGN(
        const auto offset,
        find_magic(
            source_,
            start,
            kDescriptorMagic,
            [&descriptor, start](ByteSpan at, std::uint64_t found) {
              descriptor = descriptor_at(at, found - start);
              return descriptor.has_value();
            },
            searched_));
    if (!offset || !descriptor) {
      return lose(std::move(record));
    }
    record.crc = descriptor->crc;
    record.size = descriptor->size;
    record.compressed_size = descriptor->compressed_size;
    found_.records.push_back(std::move(record));
    return *offset + descriptor->bytes;
  }

  std::uint64_t lose(ZipRecord record) {
    const std::uint64_t next = record.data_offset;
    found_.lost.push_back(
        {.name = std::move(record.name),
         .header_offset = record.header_offset});
    return next;
  }

  ByteSource& source_;
  Limits limits_;
  RecoveredRecords found_;
  std::uint64_t searched_ = 0;
};

} // namespace

Result<RecoveredRecords> recover_zip_records(
    ByteSource& source,
    const Limits& limits) {
  return Recovery(source, limits).run();
}

} // namespace lockstep::ckpt
