// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_writer.h"

#include <algorithm>
#include <utility>

#include "lockstep/ckpt/crc32.h"
#include "lockstep/ckpt/zip/zip_layout.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kIdRecord = ".data/serialization_id";
constexpr std::uint64_t kIdBytes = 40;
constexpr std::uint16_t kUtf8Flag = 0x0800;
constexpr std::uint16_t kDescriptorFlag = 0x0008;

// The checksum reads a block right before write() copies it, so that the
// second reading comes from the cache.
constexpr std::size_t kBlockBytes = 4 << 20;
constexpr std::size_t kGatherBytes = 256 << 10;

// Integers, little-endian, at the end of a text.
class Fields {
 public:
  Fields& u16(std::uint64_t value) {
    return put(value, 2);
  }
  Fields& u32(std::uint64_t value) {
    return put(value, 4);
  }
  Fields& u64(std::uint64_t value) {
    return put(value, 8);
  }
  [[nodiscard]] const std::string& text() const {
    return text_;
  }

 private:
  Fields& put(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      text_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
    }
    return *this;
  }
  std::string text_;
};

// Folder in front of every name; none without a root.
std::string prefix_of(std::string_view root) {
  return root.empty() ? std::string() : std::string(root) + '/';
}

std::uint16_t flags_of(std::uint64_t size) {
  return size == 0 ? kUtf8Flag : kUtf8Flag | kDescriptorFlag;
}

std::string local_header(
    std::string_view name,
    std::uint64_t header_offset,
    std::uint64_t size,
    const LocalLayout& layout) {
  Fields head;
  head.u32(kLocalMagic).u16(0).u16(flags_of(size)).u16(0).u16(0).u16(0);
  head.u32(0).u32(0).u32(0); // CRC and sizes follow the payload
  head.u16(name.size()).u16(layout.extra_bytes);
  Fields extra;
  if (layout.zip64_bytes != 0) {
    extra.u16(kZip64Tag).u16(layout.zip64_bytes);
    if (layout.large_size) {
      extra.u64(size).u64(0);
    }
    if (layout.large_offset) {
      extra.u64(header_offset);
    }
  }
  extra.u16(kPaddingTag).u16(layout.padding);
  std::string text = head.text();
  text += name;
  text += extra.text();
  text.append(layout.padding, 'Z');
  return text;
}

std::string
descriptor(std::uint32_t crc, std::uint64_t size, const LocalLayout& layout) {
  Fields fields;
  if (layout.descriptor_bytes == 0) {
    return {};
  }
  fields.u32(kDescriptorMagic).u32(crc);
  if (layout.large_size || layout.large_offset) {
    fields.u64(size).u64(size);
  } else {
    fields.u32(size).u32(size);
  }
  return fields.text();
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
  return offset + directory + kEnd64Bytes + kLocatorBytes + kEndBytes;
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
  Entry entry{
      .name = prefix_of(root_) + std::string(name),
      .header_offset = position_,
      .size = size};
  const LocalLayout layout = local_layout(
      {.header_offset = entry.header_offset,
       .name_bytes = entry.name.size(),
       .size = entry.size});
  append(local_header(entry.name, entry.header_offset, entry.size, layout));
  const std::uint64_t begin = position_;
  LOCKSTEP_TRY(fill([this, &entry](ByteSpan piece) {
    return append_payload(piece, entry.crc);
  }));
  LOCKSTEP_DCHECK(position_ - begin == size);
  append(descriptor(entry.crc, entry.size, layout));
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
    append_central(entry);
    if (buffer_.size() >= kGatherBytes) {
      LOCKSTEP_TRY(flush());
    }
  }
  append_end(directory_offset);
  return flush();
}

void ZipWriter::append(std::string_view bytes) {
  buffer_ += bytes;
  position_ += bytes.size();
}

Status ZipWriter::append_payload(ByteSpan payload, std::uint32_t& crc) {
  if (payload.size() <= kGatherBytes - std::min(buffer_.size(), kGatherBytes)) {
    crc = crc32(payload, crc);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as text
    const auto* text = reinterpret_cast<const char*>(payload.data());
    append(std::string_view(text, payload.size()));
    return {};
  }
  LOCKSTEP_TRY(flush());
  position_ += payload.size();
  while (!payload.empty()) {
    const auto block = payload.first(std::min(payload.size(), kBlockBytes));
    crc = crc32(block, crc);
    LOCKSTEP_TRY(file_.write(block));
    payload = payload.subspan(block.size());
  }
  return {};
}

Status ZipWriter::flush() {
  if (buffer_.empty()) {
    return {};
  }
  LOCKSTEP_TRY(file_.write(as_byte_span(buffer_)));
  buffer_.clear();
  return {};
}

void ZipWriter::append_central(const Entry& entry) {
  const RecordShape shape{
      .header_offset = entry.header_offset,
      .name_bytes = entry.name.size(),
      .size = entry.size};
  const bool large_size = entry.size >= kZip64Threshold;
  const bool large_offset = entry.header_offset >= kZip64Threshold;
  const std::uint64_t size = large_size ? kZip64Threshold : entry.size;
  Fields head;
  head.u32(kCentralMagic).u16(0).u16(0).u16(flags_of(entry.size));
  head.u16(0).u16(0).u16(0).u32(entry.crc).u32(size).u32(size);
  head.u16(entry.name.size()).u16(central_extra_bytes(shape));
  head.u16(0).u16(0).u16(0).u32(0);
  head.u32(large_offset ? kZip64Threshold : entry.header_offset);
  Fields extra;
  if (large_size || large_offset) {
    constexpr std::uint16_t kTagAndLength = 4;
    extra.u16(kZip64Tag).u16(central_extra_bytes(shape) - kTagAndLength);
    if (large_size) {
      extra.u64(entry.size).u64(entry.size);
    }
    if (large_offset) {
      extra.u64(entry.header_offset);
    }
  }
  append(head.text());
  append(entry.name);
  append(extra.text());
}

void ZipWriter::append_end(std::uint64_t directory_offset) {
  constexpr std::uint64_t kMadeBy = 0x031E;
  constexpr std::uint64_t kNeeded = 45;
  const std::uint64_t count = entries_.size();
  const std::uint64_t end64_offset = position_;
  const std::uint64_t bytes = end64_offset - directory_offset;
  const auto narrow = [](std::uint64_t value, std::uint64_t all_ones) {
    return std::min(value, all_ones);
  };
  Fields end;
  end.u32(kEnd64Magic).u64(kEnd64Bytes - 12).u16(kMadeBy).u16(kNeeded);
  end.u32(0).u32(0).u64(count).u64(count).u64(bytes).u64(directory_offset);
  end.u32(kLocatorMagic).u32(0).u64(end64_offset).u32(1);
  end.u32(kEndMagic).u16(0).u16(0);
  end.u16(narrow(count, 0xFFFF)).u16(narrow(count, 0xFFFF));
  end.u32(narrow(bytes, kZip64Threshold));
  end.u32(narrow(directory_offset, kZip64Threshold)).u16(0);
  append(end.text());
}

} // namespace lockstep::ckpt
