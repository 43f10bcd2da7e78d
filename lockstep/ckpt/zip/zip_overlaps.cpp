// SPDX-License-Identifier: BSD-3-Clause
//
// Which bytes belong to which record: each to one at most, and none lie before
// the first but a record that an edit has replaced.
#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

// True if the bytes [0, end) are one record whose name a live record has:
// Lockstep once edited archives in place, by appending the new record and a new
// directory, and left the old record behind. PyTorch reads such files.
Result<bool> is_replaced_record(
    ByteSource& source,
    const std::vector<ZipEntry>& entries,
    std::uint64_t end) {
  LOCKSTEP_ASSIGN(const auto local, read_local_record(source, 0));
  const bool is_known = local && std::ranges::any_of(entries, [&](auto& entry) {
                          return entry.record.name == local->name;
                        });
  if (!is_known || local->data_offset > end) {
    return false;
  }
  const std::uint64_t size = end - local->data_offset;
  if (!local->has_descriptor()) {
    return local->compressed_size == size;
  }
  constexpr std::uint64_t kTailBytes = kStructBytes<DataDescriptor>;
  if (size < kTailBytes) {
    return false;
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan tail,
      source.view(end - kTailBytes, kTailBytes, scratch));
  const auto descriptor = read_struct<DataDescriptor>(tail);
  return descriptor && descriptor->compressed_size == size - kTailBytes;
}

} // namespace

Status check_overlaps(
    ByteSource& source,
    const std::vector<ZipEntry>& entries) {
  std::vector<const ZipRecord*> order;
  order.reserve(entries.size());
  for (const ZipEntry& entry : entries) {
    order.push_back(&entry.record);
  }
  std::ranges::sort(order, {}, &ZipRecord::header_offset);
  if (!order.empty() && order.front()->header_offset != 0) {
    const std::uint64_t first = order.front()->header_offset;
    LOCKSTEP_ASSIGN(
        const bool is_replaced,
        is_replaced_record(source, entries, first));
    if (!is_replaced) {
      return zip_error(
          ErrorCode::kCorrupt,
          "E_PREFIX",
          format(
              "{} before the first record",
              counted(first, "byte lies", "bytes lie")),
          0);
    }
  }
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ZipRecord& first = *order[i - 1];
    const ZipRecord& second = *order[i];
    const std::uint64_t end = first.data_offset + first.compressed_size;
    if (second.header_offset < end) {
      return zip_error(
          ErrorCode::kCorrupt,
          "E_OVERLAP",
          format(
              "bytes [{}, {}) of '{}' overlap [{}, {}) of this record",
              first.header_offset,
              end,
              escape(first.name),
              second.header_offset,
              second.data_offset + second.compressed_size),
          second.header_offset,
          second.name);
    }
  }
  return {};
}

} // namespace lockstep::ckpt::internal
