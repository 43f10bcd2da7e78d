// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_writer.h"

#include <algorithm>
#include <utility>

#include "lockstep/ckpt/zip/crc32.h"
#include "lockstep/ckpt/zip/zip_layout.h"
#include "lockstep/ckpt/zip/zip_records.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

// The checksum reads a block right before write() copies it, so that the
// second reading comes from the cache. Blocks end at multiples of their size in
// the file: the kernel then takes few large pages instead of many small ones.
constexpr std::uint64_t kWriteBytes = 512 << 10;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kGatherBytes = 256 << 10;
// Larger payloads are worth a write of their own instead of a copy.
constexpr std::size_t kDirectBytes = 64 << 10;

// Folder in front of every name; none without a root.
std::string prefix_of(std::string_view root) {
  return root.empty() ? std::string() : std::string(root) + '/';
}

// Bytes from `position` to the next multiple of `unit`.
std::uint64_t to_multiple(std::uint64_t position, std::uint64_t unit) {
  return (unit - position % unit) % unit;
}

} // namespace

std::uint64_t zip_file_bytes(
    std::string_view root,
    std::span<const PlannedRecord> records) {
  std::uint64_t offset = 0;
  std::uint64_t directory = 0;
  const auto place = [&](std::string_view name, std::uint64_t size) {
    const RecordShape shape{
        .header_offset = offset,
        .name_bytes = prefix_of(root).size() + name.size(),
        .size = size};
    offset = local_layout(shape).end;
    directory += central_entry_bytes(shape);
  };
  for (const PlannedRecord& record : records) {
    place(record.name, record.size);
  }
  if (!root.empty()) {
    place(kIdRecord, kIdBytes);
  }
  return offset + directory + kStructBytes<End64Record> +
         kStructBytes<End64Locator> + kStructBytes<EndRecord>;
}

ZipWriter::ZipWriter(WritableFile& file, std::string root)
    : file_(file), root_(std::move(root)) {
  buffer_.reserve(kGatherBytes);
}

Status ZipWriter::add(std::string_view name, ByteSpan payload) {
  return add(name, payload.size(), [payload](const Sink& sink) {
    return sink(payload);
  });
}

Status
ZipWriter::add(std::string_view name, std::uint64_t size, const Fill& fill) {
  Entry entry = begin(name, size);
  const std::uint64_t start = position_;
  LOCKSTEP_TRY(fill([this, &entry](ByteSpan piece) {
    return append_payload(piece, entry.crc);
  }));
  LOCKSTEP_CHECK(position_ - start == size);
  return end(name, std::move(entry));
}

Status ZipWriter::add_stored(
    std::string_view name,
    ReadableFile& source,
    const StoredRange& range) {
  Entry entry = begin(name, range.size);
  LOCKSTEP_TRY(flush());
  LOCKSTEP_TRY(file_.copy_from(source, range.offset, range.size));
  position_ += range.size;
  entry.crc = range.crc;
  return end(name, std::move(entry));
}

ZipWriter::Entry ZipWriter::begin(std::string_view name, std::uint64_t size) {
  Entry entry{
      .name = prefix_of(root_) + std::string(name),
      .header_offset = position_,
      .size = size};
  append(internal::local_header(entry));
  return entry;
}

Status ZipWriter::end(std::string_view name, Entry entry) {
  append(internal::descriptor(entry));
  id_.add(name, entry.crc, entry.size);
  entries_.push_back(std::move(entry));
  return buffer_.size() < kGatherBytes ? Status() : flush();
}

Status ZipWriter::finish() {
  if (!root_.empty()) {
    LOCKSTEP_TRY(add(kIdRecord, as_byte_span(id_.text())));
  }
  const std::uint64_t directory_offset = position_;
  for (const Entry& entry : entries_) {
    append(internal::central_entry(entry));
    if (buffer_.size() >= kGatherBytes) {
      LOCKSTEP_TRY(flush());
    }
  }
  append(internal::end_records(
      {.count = entries_.size(),
       .directory_offset = directory_offset,
       .directory_bytes = position_ - directory_offset,
       .end64_offset = position_}));
  return flush();
}

void ZipWriter::append(std::string_view bytes) {
  buffer_ += bytes;
  position_ += bytes.size();
}

Status ZipWriter::append_payload(ByteSpan payload, std::uint32_t& crc) {
  if (payload.size() < kDirectBytes) {
    append_block(payload, crc);
    return buffer_.size() < kGatherBytes ? Status() : flush();
  }
  // The buffer takes what is left of a page on both sides.
  const auto head = payload.first(to_multiple(position_, kPageBytes));
  append_block(head, crc);
  LOCKSTEP_TRY(flush());
  payload = payload.subspan(head.size());
  while (payload.size() >= kPageBytes) {
    const auto block = payload.first(std::min<std::uint64_t>(
        payload.size() - payload.size() % kPageBytes,
        kWriteBytes - position_ % kWriteBytes));
    crc = crc32(block, crc);
    LOCKSTEP_TRY(file_.write(block));
    position_ += block.size();
    payload = payload.subspan(block.size());
  }
  append_block(payload, crc);
  return {};
}

void ZipWriter::append_block(ByteSpan block, std::uint32_t& crc) {
  crc = crc32(block, crc);
  append(as_text(block));
}

Status ZipWriter::flush() {
  if (buffer_.empty()) {
    return {};
  }
  LOCKSTEP_TRY(file_.write(as_byte_span(buffer_)));
  buffer_.clear();
  return {};
}

} // namespace lockstep::ckpt
