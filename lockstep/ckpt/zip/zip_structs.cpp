// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_structs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::ckpt {

using internal::read_le;

std::size_t zip_magic_prefix(ByteSpan bytes) {
  std::size_t equal = 0;
  while (equal < std::min(bytes.size(), sizeof(LocalHeader::kMagic)) &&
         static_cast<std::uint32_t>(bytes[equal]) ==
             (LocalHeader::kMagic >> (8 * equal) & 0xFF)) {
    ++equal;
  }
  return equal;
}

bool starts_like_zip(ByteSpan bytes) {
  return zip_magic_prefix(bytes) == sizeof(LocalHeader::kMagic);
}

Result<bool> ends_like_zip(ByteSource& source) {
  const std::uint64_t length = std::min(source.size(), kStructBytes<EndRecord>);
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan tail,
      source.view(source.size() - length, length, scratch));
  return read_struct<EndRecord>(tail).has_value();
}

std::optional<ByteSpan> find_extra_field(ByteSpan fields, std::uint16_t tag) {
  constexpr std::size_t kHeadBytes = 4; // tag and length
  while (fields.size() >= kHeadBytes) {
    const auto found = read_le<std::uint16_t>(fields, 0);
    const std::size_t length = read_le<std::uint16_t>(fields, 2);
    fields = fields.subspan(kHeadBytes);
    if (length > fields.size()) {
      break;
    }
    if (found == tag) {
      return fields.first(length);
    }
    fields = fields.subspan(length);
  }
  return std::nullopt;
}

Result<std::optional<LocalRecord>> read_local_record(
    ByteSource& source,
    std::uint64_t offset) {
  constexpr std::uint64_t kTwoSizes = 16;
  if (offset > source.size() ||
      kStructBytes<LocalHeader> > source.size() - offset) {
    return std::optional<LocalRecord>();
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan head,
      source.view(offset, kStructBytes<LocalHeader>, scratch));
  const auto header = read_struct<LocalHeader>(head);
  const std::uint64_t names = offset + kStructBytes<LocalHeader>;
  if (!header || header->name_bytes > kMaxNameBytes ||
      std::uint64_t{header->name_bytes} + header->extra_bytes >
          source.size() - names) {
    return std::optional<LocalRecord>();
  }
  LOCKSTEP_ASSIGN(
      const ByteSpan rest,
      source.view(names, header->name_bytes + header->extra_bytes, scratch));
  LocalRecord record{
      .header = *header,
      .name = std::string(as_text(rest.first(header->name_bytes))),
      .compressed_size = header->compressed_size,
      .size = header->size,
      .data_offset = names + rest.size()};
  const auto wide =
      find_extra_field(rest.subspan(header->name_bytes), kZip64Tag);
  if (record.size == kZip64Threshold && wide && wide->size() >= kTwoSizes) {
    record.size = read_le<std::uint64_t>(*wide, 0);
    record.compressed_size = read_le<std::uint64_t>(*wide, 8);
  }
  return std::optional(std::move(record));
}

} // namespace lockstep::ckpt
