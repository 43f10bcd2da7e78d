// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_directory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/zip/header_window.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::uint16_t kRefusedFlags =
    kEncryptedFlag | kPatchedFlag | kStronglyEncryptedFlag | kMaskedFlag;

// Deflate itself cannot give more than 1032 bytes for one.
std::uint64_t max_ratio(const Limits& limits) {
  return std::clamp<std::uint64_t>(limits.max_ratio, 1, 1032);
}

Error corrupt(
    const ZipRecord& record,
    std::string detail,
    std::string message) {
  return zip_error(
      ErrorCode::kCorrupt,
      std::move(detail),
      std::move(message),
      record.header_offset,
      record.name);
}

Status apply_zip64(ByteSpan extra, std::uint64_t at, ZipRecord& record) {
  const std::array<std::uint64_t*, 3> fields{
      &record.size,
      &record.compressed_size,
      &record.header_offset};
  if (take_wide_fields(extra, fields)) {
    return {};
  }
  return zip_error(
      ErrorCode::kCorrupt,
      "E_BOUNDS",
      "a 64-bit size or offset is announced but not stored",
      at,
      record.name);
}

Status check_kind(const ZipEntry& entry) {
  const ZipRecord& record = entry.record;
  std::string_view name = record.name;
  if (is_folder(record)) {
    name.remove_suffix(1);
  }
  if (!is_record_name(name)) {
    return corrupt(
        record,
        "E_NAME",
        format("record name '{}' is not accepted", escape(record.name)));
  }
  if ((entry.flags & kRefusedFlags) != 0) {
    return zip_error(
        ErrorCode::kUnsupported,
        "E_ENCRYPTED",
        format(
            "the record is encrypted or patched (flags {:#06x})",
            entry.flags),
        record.header_offset,
        record.name);
  }
  if (entry.disk > 1) { // 1 as in PyTorch's reader
    return zip_error(
        ErrorCode::kUnsupported,
        "E_BOUNDS",
        "the record is on another disk of an archive of several",
        record.header_offset,
        record.name);
  }
  if (record.method != kStored && record.method != kDeflated) {
    return zip_error(
        ErrorCode::kUnsupported,
        "E_METHOD",
        format(
            "unknown compression method; expected 0 or 8, got {}",
            record.method),
        record.header_offset,
        record.name);
  }
  return {};
}

Status check_sizes(
    const ZipRecord& record,
    std::uint64_t directory_offset,
    const Limits& limits) {
  if (record.header_offset > directory_offset ||
      record.compressed_size > directory_offset - record.header_offset) {
    return corrupt(
        record,
        "E_BOUNDS",
        format(
            "the record does not fit before the directory at {}; got offset "
            "{} and {} bytes",
            directory_offset,
            record.header_offset,
            record.compressed_size));
  }
  if (record.method == kStored && record.size != record.compressed_size) {
    return corrupt(
        record,
        "E_BOUNDS",
        format(
            "a stored record has two sizes: {} and {} bytes",
            record.compressed_size,
            record.size));
  }
  if (!is_within_ratio(record, limits)) {
    return zip_error(
        ErrorCode::kUnsafe,
        "E_RATIO",
        format(
            "{} bytes would expand to {}; at most {} times as many are "
            "accepted",
            record.compressed_size,
            record.size,
            max_ratio(limits)),
        record.header_offset,
        record.name,
        "expanding() reads it, if you trust the file");
  }
  return {};
}

Status check_against_local(const LocalHeader& local, const ZipEntry& entry) {
  const ZipRecord& record = entry.record;
  const auto differs = [&](std::string_view what,
                           std::uint64_t central,
                           std::uint64_t here) -> Error {
    return corrupt(
        record,
        "E_LOCAL_MISMATCH",
        format(
            "directory and local header disagree about the {}; expected {}, "
            "got {}",
            what,
            central,
            here));
  };
  if (((local.flags ^ entry.flags) & (kRefusedFlags | kDescriptorFlag)) != 0) {
    return differs("flags", entry.flags, local.flags);
  }
  if (local.method != record.method) {
    return differs("method", record.method, local.method);
  }
  struct Field {
    std::string_view name = {};
    std::uint64_t central = 0;
    std::uint64_t here = 0;
    bool may_be_wide = true;
  };
  const bool streamed = (local.flags & kDescriptorFlag) != 0;
  for (const Field& field :
       {Field{"CRC", record.crc, local.crc, false},
        Field{"stored size", record.compressed_size, local.compressed_size},
        Field{"size", record.size, local.size}}) {
    // With a descriptor the header holds zeros; all ones mean 64-bit fields.
    const bool open = (streamed && field.here == 0) ||
                      (field.may_be_wide && field.here == kZip64Threshold);
    if (!open && field.here != field.central) {
      return differs(field.name, field.central, field.here);
    }
  }
  return {};
}

// `bytes` holds the header with its name, or all bytes before the directory.
Status locate(ByteSpan bytes, const ZipEnd& end, ZipEntry& entry) {
  ZipRecord& record = entry.record;
  const auto local = read_struct<LocalHeader>(bytes);
  if (!local) {
    return corrupt(record, "E_BOUNDS", "no local header where it should be");
  }
  const bool same_name = std::ranges::equal(
      bytes.subspan(kStructBytes<LocalHeader>),
      as_byte_span(record.name));
  if (!same_name || local->name_bytes != record.name.size()) {
    return corrupt(
        record,
        "E_LOCAL_MISMATCH",
        "directory and local header disagree about the name");
  }
  LOCKSTEP_TRY(check_against_local(*local, entry));
  const std::uint64_t start =
      record.header_offset + bytes.size() + local->extra_bytes;
  if (start > end.directory_offset ||
      record.compressed_size > end.directory_offset - start) {
    return corrupt(
        record,
        "E_BOUNDS",
        format(
            "the record reaches past the end of the file; expected at most {} "
            "bytes, got {}",
            end.directory_offset - std::min(start, end.directory_offset),
            record.compressed_size));
  }
  record.data_offset = start;
  return {};
}

// An entry and the bytes it takes in the directory.
struct SizedEntry {
  ZipEntry entry = {};
  std::uint64_t bytes = 0;
};

// The entry at the start of `rest`, which begins at `offset` of the file.
Result<SizedEntry>
parse_entry(ByteSpan rest, std::uint64_t offset, std::uint64_t index) {
  const auto header = read_struct<CentralHeader>(rest);
  const std::uint64_t entry_bytes =
      header ? kStructBytes<CentralHeader> + header->name_bytes +
                   header->extra_bytes + header->comment_bytes
             : 0;
  if (!header || entry_bytes > rest.size()) {
    return zip_error(
        ErrorCode::kCorrupt,
        "E_BOUNDS",
        format("entry {} of the zip directory is truncated or damaged", index),
        offset);
  }
  rest = rest.subspan(kStructBytes<CentralHeader>);
  ZipEntry entry{
      .record =
          {.name = std::string(as_text(rest.first(header->name_bytes))),
           .compressed_size = header->compressed_size,
           .size = header->size,
           .crc = header->crc,
           .method = header->method,
           .header_offset = header->header_offset},
      .flags = header->flags,
      .disk = header->disk};
  LOCKSTEP_TRY(apply_zip64(
      rest.subspan(header->name_bytes, header->extra_bytes),
      offset,
      entry.record));
  return SizedEntry{.entry = std::move(entry), .bytes = entry_bytes};
}

} // namespace

Error zip_error(
    ErrorCode code,
    std::string detail,
    std::string message,
    std::optional<std::uint64_t> offset,
    std::string_view record,
    std::string hint) {
  return {
      .code = code,
      .op = "ckpt.read",
      .message = std::move(message),
      .hint = std::move(hint),
      .record = escape(record),
      .offset = offset,
      .detail = std::move(detail)};
}

bool is_folder(const ZipRecord& record) {
  return record.name.ends_with('/') && record.size == 0;
}

bool is_within_ratio(const ZipRecord& record, const Limits& limits) {
  const std::uint64_t ratio = max_ratio(limits);
  return record.size <= ratio || record.size / ratio <= record.compressed_size;
}

Result<std::vector<ZipEntry>>
read_zip_entries(ByteSource& source, const ZipEnd& end, const Limits& limits) {
  if (end.count > limits.max_records ||
      end.count > end.directory_bytes / kStructBytes<CentralHeader>) {
    return zip_error(
        end.count > limits.max_records ? ErrorCode::kUnsafe
                                       : ErrorCode::kCorrupt,
        "E_LIMIT",
        format(
            "{} records are announced; at most {} fit",
            end.count,
            std::min(
                limits.max_records,
                end.directory_bytes / kStructBytes<CentralHeader>)),
        end.directory_offset,
        "",
        end.count > limits.max_records ? "Limits::max_records allows more"
                                       : "");
  }
  const auto budget = budget_of(limits, source.size());
  LOCKSTEP_TRY(budget->read(end.directory_bytes));
  LOCKSTEP_TRY(budget->make(end.count * sizeof(ZipEntry)));
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source.view(end.directory_offset, end.directory_bytes, scratch));
  std::vector<ZipEntry> entries;
  entries.reserve(end.count);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < end.count; ++i) {
    LOCKSTEP_ASSIGN(
        SizedEntry next,
        parse_entry(bytes.subspan(at), end.directory_offset + at, i));
    LOCKSTEP_TRY(check_kind(next.entry));
    LOCKSTEP_TRY(check_sizes(next.entry.record, end.directory_offset, limits));
    entries.push_back(std::move(next.entry));
    at += next.bytes;
  }
  if (at != end.directory_bytes) {
    return zip_error(
        ErrorCode::kCorrupt,
        "E_BOUNDS",
        format(
            "the zip directory holds {} bytes more than its {} entries",
            end.directory_bytes - at,
            end.count),
        end.directory_offset + at);
  }
  return entries;
}

Status check_local_headers(
    ByteSource& source,
    const ZipEnd& end,
    std::vector<ZipEntry>& entries) {
  HeaderWindow headers(source, entries, end.directory_offset);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ZipRecord& record = entries[i].record;
    const std::uint64_t room = end.directory_offset - record.header_offset;
    LOCKSTEP_ASSIGN(
        const ByteSpan local,
        headers.view(
            i,
            record.header_offset,
            std::min(room, kStructBytes<LocalHeader> + record.name.size())));
    LOCKSTEP_TRY(locate(local, end, entries[i]));
  }
  return {};
}

} // namespace lockstep::ckpt::internal

namespace lockstep::ckpt {

// A name is compared, printed and never used as a path; still a name that
// would be dangerous as one shows that the file is hostile.
bool is_record_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '/' ||
      name.find('\\') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return false;
  }
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    name.remove_prefix(slash + 1);
  }
}

} // namespace lockstep::ckpt
