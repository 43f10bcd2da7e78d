// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_recover.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

// Blocks grow while nothing is found: most records are small.
constexpr std::uint64_t kFirstBlockBytes = 1ULL << 12;
constexpr std::uint64_t kLastBlockBytes = 1ULL << 20;

// Servers and scripts put a few lines in front of a file; behind more it is a
// part of something else.
constexpr std::uint64_t kMaxForeignBytes = 64 << 10;

// Offset of the first structure in [from, end) that `accept` takes.
using Accept = std::function<bool(ByteSpan at, std::uint64_t offset)>;

template <class Struct>
Result<std::optional<std::uint64_t>> find_struct(
    ByteSource& source,
    std::uint64_t from,
    const Accept& accept,
    Budget& budget) {
  const std::string magic = magic_of<Struct>();
  std::vector<std::byte> scratch;
  std::uint64_t block_bytes = kFirstBlockBytes;
  for (std::uint64_t at = from; at < source.size();) {
    // A structure must be in one view.
    const std::uint64_t length =
        std::min(block_bytes + kStructBytes<Struct>, source.size() - at);
    LOCKSTEP_ASSIGN(const ByteSpan block, source.view(at, length, scratch));
    const std::string_view text = as_text(block);
    for (std::size_t i = text.find(magic); i < block_bytes && i < text.size();
         i = text.find(magic, i + 1)) {
      if (accept(block.subspan(i), at + i)) {
        LOCKSTEP_TRY(budget.step(i));
        return std::optional(at + i);
      }
    }
    LOCKSTEP_TRY(budget.step(length));
    at += block_bytes;
    block_bytes = std::min(2 * block_bytes, kLastBlockBytes);
  }
  return std::optional<std::uint64_t>();
}

// Completes the record by the descriptor at `at` and gives its length, if one
// is there. Its size must be the distance from the payload's start: bytes of a
// tensor do not do that by chance.
template <class Descriptor>
std::uint64_t take_descriptor(
    ByteSpan at,
    std::uint64_t distance,
    const Limits& limits,
    ZipRecord& record) {
  const auto descriptor = read_struct<Descriptor>(at);
  if (!descriptor || descriptor->compressed_size != distance) {
    return 0;
  }
  ZipRecord complete = record;
  complete.crc = descriptor->crc;
  complete.compressed_size = distance;
  complete.size = descriptor->size;
  const bool fits = record.method == kStored
                        ? complete.size == distance
                        : internal::is_within_ratio(complete, limits);
  if (!fits) {
    return 0;
  }
  record = std::move(complete);
  return kStructBytes<Descriptor>;
}

class Recovery {
 public:
  Recovery(ByteSource& source, Limits limits)
      : source_(source),
        limits_(std::move(limits)),
        budget_(budget_of(limits_, source.size())) {}

  Result<RecoveredRecords> run() {
    std::uint64_t at = 0;
    for (;;) {
      LOCKSTEP_ASSIGN(
          const auto header,
          find_struct<LocalHeader>(source_, at, is_plausible, *budget_));
      if (!header) {
        return std::move(found_);
      }
      if (found_.records.size() + found_.lost.size() >= limits_.max_records) {
        return internal::zip_error(
            ErrorCode::kUnsafe,
            "E_LIMIT",
            format("the archive has more than {} records", limits_.max_records),
            header,
            "",
            "Limits::max_records allows more");
      }
      LOCKSTEP_ASSIGN(at, read_record(*header));
    }
  }

 private:
  static bool is_plausible(ByteSpan at, std::uint64_t /*offset*/) {
    const auto header = read_struct<LocalHeader>(at);
    return header && header->name_bytes != 0 &&
           (header->method == kStored || header->method == kDeflated);
  }

  // Gives the offset after the record, or after its header if it is lost.
  Result<std::uint64_t> read_record(std::uint64_t offset) {
    LOCKSTEP_ASSIGN(auto local, read_local_record(source_, offset));
    if (!local) {
      return offset + kStructBytes<LocalHeader>; // no header, or a cut one
    }
    ZipRecord record{
        .name = std::move(local->name),
        .data_offset = local->data_offset,
        .compressed_size = local->compressed_size,
        .size = local->size,
        .crc = local->header.crc,
        .method = local->header.method,
        .header_offset = offset};
    if (internal::is_folder(record) && record.compressed_size == 0 &&
        !local->has_descriptor()) {
      return record.data_offset;
    }
    if (local->has_descriptor() && record.compressed_size == 0) {
      return read_until_descriptor(std::move(record));
    }
    if (record.compressed_size > source_.size() - record.data_offset) {
      return lose(std::move(record));
    }
    const std::uint64_t end = record.data_offset + record.compressed_size;
    found_.records.push_back(std::move(record));
    return end;
  }

  Result<std::uint64_t> read_until_descriptor(ZipRecord record) {
    const std::uint64_t start = record.data_offset;
    std::uint64_t bytes = 0;
    // The wide one first: its sizes look like a narrow one of no content.
    const auto take = [&](ByteSpan at, std::uint64_t found) {
      bytes =
          take_descriptor<DataDescriptor64>(at, found - start, limits_, record);
      if (bytes == 0) {
        bytes =
            take_descriptor<DataDescriptor>(at, found - start, limits_, record);
      }
      return bytes != 0;
    };
    LOCKSTEP_ASSIGN(
        const auto offset,
        find_struct<DataDescriptor64>(source_, start, take, *budget_));
    if (!offset) {
      return lose(std::move(record));
    }
    found_.records.push_back(std::move(record));
    return *offset + bytes;
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
  std::shared_ptr<Budget> budget_;
  RecoveredRecords found_;
};

} // namespace

Result<std::optional<std::uint64_t>> find_zip_start(ByteSource& source) {
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan head,
      source.view(0, std::min(source.size(), kMaxForeignBytes), scratch));
  if (starts_like_zip(head)) {
    return std::optional<std::uint64_t>(0);
  }
  const std::string magic = magic_of<LocalHeader>();
  const std::string_view text = as_text(head);
  for (std::size_t at = text.find(magic); at < text.size();
       at = text.find(magic, at + 1)) {
    LOCKSTEP_ASSIGN(const auto record, read_local_record(source, at));
    if (record && record->name.find('/') != std::string::npos) {
      return std::optional<std::uint64_t>(at);
    }
  }
  return std::optional<std::uint64_t>();
}

Result<std::vector<std::uint64_t>> find_end_records(
    ByteSource& source,
    const Limits& limits) {
  std::vector<std::uint64_t> offsets;
  const auto note = [&offsets](ByteSpan at, std::uint64_t offset) {
    if (read_struct<EndRecord>(at)) {
      offsets.push_back(offset);
    }
    return false;
  };
  const auto budget = budget_of(limits, source.size());
  LOCKSTEP_TRY(find_struct<EndRecord>(source, 0, note, *budget));
  return offsets;
}

Result<RecoveredRecords> recover_zip_records(
    ByteSource& source,
    const Limits& limits) {
  return Recovery(source, limits).run();
}

} // namespace lockstep::ckpt
