// SPDX-License-Identifier: BSD-3-Clause
//
// The order of the writes is the whole point: see docs/formats/
// edit_in_place.md before changing it.
#include "lockstep/ckpt/zip/zip_append.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/zip/crc32.h"
#include "lockstep/ckpt/zip/serialization_id.h"
#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_layout.h"
#include "lockstep/ckpt/zip/zip_records.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

using internal::EndPlan;
using internal::ZipEnd;

constexpr std::uint64_t kEndRecordsBytes = kStructBytes<End64Record> +
                                           kStructBytes<End64Locator> +
                                           kStructBytes<EndRecord>;
// Readers look for the end record in the last 64 KiB: were a step torn, the
// one before it must still be found.
constexpr std::uint64_t kMaxStep = 60'000;

Error not_in_place(std::string message) {
  return {
      .code = ErrorCode::kUnsupported,
      .op = "ckpt.edit",
      .message = std::move(message),
      .hint = "write to a new file instead",
      .detail = "E_NOT_IN_PLACE"};
}

// The old archive: what stays of its directory.
struct OldArchive {
  std::shared_ptr<ByteSource> source = {};
  ZipEnd end = {};
  std::vector<internal::ZipEntry> entries = {};
  std::string root = {};
  // The directory, entry by entry, as bytes.
  std::vector<std::string> raw = {};
};

std::vector<std::string> split_directory(ByteSpan directory) {
  std::vector<std::string> raw;
  while (const auto header = read_struct<CentralHeader>(directory)) {
    const std::uint64_t bytes = kStructBytes<CentralHeader> +
                                header->name_bytes + header->extra_bytes +
                                header->comment_bytes;
    // The length was checked by read_zip_entries.
    raw.emplace_back(as_text(directory.first(bytes)));
    directory = directory.subspan(bytes);
  }
  return raw;
}

// The caller has read and checked the archive; this tells what else there is.
Result<std::string> common_root(
    const std::vector<internal::ZipEntry>& entries) {
  const std::string first = entries.empty() ? "" : entries.front().record.name;
  const std::string root = first.substr(0, first.find('/'));
  const bool is_common = std::ranges::all_of(entries, [&](const auto& entry) {
    return entry.record.name.starts_with(root + '/');
  });
  return is_common && !entries.empty()
             ? Result(root)
             : not_in_place("the records are not in one folder");
}

Result<OldArchive> open_old(
    FileSystem& fs,
    const std::string& path,
    const AppendOptions& options) {
  OldArchive old;
  LOCKSTEP_ASSIGN(old.source, open_source(path, {.use_mmap = false}, fs));
  if (old.source->size() != options.file_bytes) {
    return Error{
        .code = ErrorCode::kIo,
        .op = "ckpt.edit",
        .message = format(
            "the file changed meanwhile; expected {} bytes, got {}",
            options.file_bytes,
            old.source->size()),
        .detail = "E_CHANGED"};
  }
  LOCKSTEP_ASSIGN(old.end, internal::read_zip_end(*old.source));
  if (old.end.trailing_bytes != 0 || old.end.comment_bytes != 0) {
    return not_in_place("bytes follow the zip archive");
  }
  LOCKSTEP_ASSIGN(
      old.entries,
      internal::read_zip_entries(*old.source, old.end, options.limits));
  LOCKSTEP_ASSIGN(old.root, common_root(old.entries));
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan directory,
      old.source
          ->view(old.end.directory_offset, old.end.directory_bytes, scratch));
  old.raw = split_directory(directory);
  return old;
}

// What will lie behind the old end, and where.
struct Tail {
  std::string bytes = {};
  EndPlan end = {};
};

class TailBuilder {
 public:
  TailBuilder(const OldArchive& old, std::span<const NewRecord> records)
      : old_(old), records_(records) {}

  // `gap` bytes between the old end and the first record. The directory lists
  // the records in the order of the file, the new ones last.
  Tail build(std::uint64_t gap) const {
    Tail tail;
    tail.bytes.assign(gap, '\0');
    std::vector<std::string> raw;
    SerializationId id;
    bool has_id = false;
    for (std::size_t i = 0; i < old_.raw.size(); ++i) {
      const auto& record = old_.entries[i].record;
      const std::string name = record.name.substr(old_.root.size() + 1);
      has_id = has_id || name == kIdRecord;
      if (name != kIdRecord && find(name) == nullptr) {
        id.add(name, record.crc, record.size);
        raw.push_back(old_.raw[i]);
      }
    }
    const auto add = [&](const std::string& name, const std::string& bytes) {
      const ZipEntryPlan plan = append(tail, old_.root + '/' + name, bytes);
      id.add(name, plan.crc, plan.size);
      raw.push_back(internal::central_entry(plan));
    };
    for (const NewRecord& record : records_) {
      add(record.name, record.bytes);
    }
    if (has_id) {
      add(std::string(kIdRecord), id.text());
    }
    tail.end.directory_offset = base() + tail.bytes.size();
    for (const std::string& entry : raw) {
      tail.bytes += entry;
    }
    tail.end.end64_offset = base() + tail.bytes.size();
    tail.end.directory_bytes =
        tail.end.end64_offset - tail.end.directory_offset;
    tail.end.count = raw.size();
    return tail;
  }

  // The first gap with which the end records lie within one sector, so that
  // they turn from old to new as a whole.
  Tail build() const {
    Tail tail;
    for (std::uint64_t gap = 0; gap <= kSectorBytes; gap += kStorageAlignment) {
      tail = build(gap);
      if (tail.end.end64_offset % kSectorBytes <=
          kSectorBytes - kEndRecordsBytes) {
        break;
      }
    }
    return tail;
  }

 private:
  [[nodiscard]] std::uint64_t base() const {
    return old_.source->size();
  }
  [[nodiscard]] const NewRecord* find(std::string_view name) const {
    const auto found = std::ranges::find(records_, name, &NewRecord::name);
    return found == records_.end() ? nullptr : &*found;
  }
  ZipEntryPlan
  append(Tail& tail, const std::string& name, const std::string& bytes) const {
    ZipEntryPlan plan{
        .name = name,
        .header_offset = base() + tail.bytes.size(),
        .size = bytes.size(),
        .crc = crc32(as_byte_span(bytes))};
    tail.bytes += internal::local_header(plan);
    tail.bytes += bytes;
    tail.bytes += internal::descriptor(plan);
    return plan;
  }

  const OldArchive& old_;
  std::span<const NewRecord> records_;
};

Status check_replaced(
    const OldArchive& old,
    std::span<const NewRecord> records) {
  for (const NewRecord& record : records) {
    const bool is_there = std::ranges::any_of(old.entries, [&](const auto& e) {
      return e.record.name == old.root + '/' + record.name;
    });
    if (!is_there) {
      return not_in_place(format("there is no record '{}'", record.name));
    }
  }
  return {};
}

// Moves the old end records, step by step, to where the new ones will be: the
// file then has its new length and is still the old archive.
Status move_end(WritableFile& file, const OldArchive& old, const Tail& tail) {
  EndPlan plan{
      .count = old.end.count,
      .directory_offset = old.end.directory_offset,
      .directory_bytes = old.end.directory_bytes,
      .made_by = internal::kMadeByEdit};
  const std::uint64_t target = tail.end.end64_offset;
  std::uint64_t at = old.source->size();
  while (at != target) {
    const std::uint64_t next = (at + kMaxStep) / kSectorBytes * kSectorBytes;
    plan.end64_offset = std::min(next, target);
    LOCKSTEP_TRY(file.write_at(
        plan.end64_offset,
        as_byte_span(internal::end_records(plan))));
    LOCKSTEP_TRY(file.sync());
    at = plan.end64_offset;
  }
  return {};
}

// Everything up to the moment at which the archive is still the old one.
Status prepare(WritableFile& file, const OldArchive& old, const Tail& tail) {
  LOCKSTEP_TRY(move_end(file, old, tail));
  LOCKSTEP_TRY(file.write_at(old.source->size(), as_byte_span(tail.bytes)));
  return file.sync();
}

} // namespace

Result<std::uint64_t> replace_records(
    FileSystem& fs,
    const std::string& path,
    std::span<const NewRecord> records,
    const AppendOptions& options) {
  LOCKSTEP_ASSIGN(const auto file, fs.open_update(path));
  LOCKSTEP_ASSIGN(const OldArchive old, open_old(fs, path, options));
  LOCKSTEP_TRY(check_replaced(old, records));
  const Tail tail = TailBuilder(old, records).build();
  if (Status ready = prepare(*file, old, tail); !ready) {
    // The old end records are where they were: back to the old length.
    static_cast<void>(fs.truncate(path, old.source->size()));
    return std::move(ready).error();
  }
  LOCKSTEP_TRY(file->write_at(
      tail.end.end64_offset,
      as_byte_span(internal::end_records(tail.end))));
  LOCKSTEP_TRY(file->sync());
  LOCKSTEP_TRY(file->close());
  return tail.bytes.size() + kEndRecordsBytes;
}

} // namespace lockstep::ckpt
