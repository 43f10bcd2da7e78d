// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_structs.h"

#include <algorithm>
#include <array>
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

bool take_wide_fields(ByteSpan extra, std::span<std::uint64_t* const> fields) {
  const auto is_saturated = [](const std::uint64_t* field) {
    return *field == kZip64Threshold;
  };
  const auto missing =
      static_cast<std::size_t>(std::ranges::count_if(fields, is_saturated));
  if (missing == 0) {
    return true;
  }
  const auto wide = find_extra_field(extra, kZip64Tag);
  if (!wide || wide->size() < missing * sizeof(std::uint64_t)) {
    return false;
  }
  std::size_t at = 0;
  for (std::uint64_t* field : fields) {
    if (is_saturated(field)) {
      *field = read_le<std::uint64_t>(*wide, at);
      at += sizeof(std::uint64_t);
    }
  }
  return true;
}

Result<std::optional<LocalRecord>> read_local_record(
    ByteSource& source,
    std::uint64_t offset) {
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
  // Without a zip64 field they are what they say: all ones is a size, too.
  const std::array<std::uint64_t*, 2> sizes{
      &record.size,
      &record.compressed_size};
  take_wide_fields(rest.subspan(header->name_bytes), sizes);
  return std::optional(std::move(record));
}

} // namespace lockstep::ckpt
