// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_records.h"

#include <algorithm>

#include "lockstep/ckpt/zip/zip_layout.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::uint16_t kUtf8Flag = 0x0800;

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

std::uint16_t flags_of(std::uint64_t size) {
  return size == 0 ? kUtf8Flag : kUtf8Flag | kDescriptorFlag;
}

RecordShape shape_of(const ZipEntryPlan& entry) {
  return {
      .header_offset = entry.header_offset,
      .name_bytes = entry.name.size(),
      .size = entry.size};
}

} // namespace

std::string local_header(const ZipEntryPlan& entry) {
  const LocalLayout layout = local_layout(shape_of(entry));
  Fields head;
  head.u32(kLocalMagic).u16(0).u16(flags_of(entry.size)).u16(0);
  head.u16(0).u16(0);
  head.u32(0).u32(0).u32(0); // CRC and sizes follow the payload
  head.u16(entry.name.size()).u16(layout.extra_bytes);
  Fields extra;
  if (layout.zip64_bytes != 0) {
    extra.u16(kZip64Tag).u16(layout.zip64_bytes);
    if (layout.large_size) {
      extra.u64(entry.size).u64(0);
    }
    if (layout.large_offset) {
      extra.u64(entry.header_offset);
    }
  }
  extra.u16(kPaddingTag).u16(layout.padding);
  std::string text = head.text();
  text += entry.name;
  text += extra.text();
  text.append(layout.padding, 'Z');
  return text;
}

std::string descriptor(const ZipEntryPlan& entry) {
  const LocalLayout layout = local_layout(shape_of(entry));
  if (layout.descriptor_bytes == 0) {
    return {};
  }
  Fields fields;
  fields.u32(kDescriptorMagic).u32(entry.crc);
  if (layout.large_size || layout.large_offset) {
    fields.u64(entry.size).u64(entry.size);
  } else {
    fields.u32(entry.size).u32(entry.size);
  }
  return fields.text();
}

std::string central_entry(const ZipEntryPlan& entry) {
  const std::uint16_t extra_bytes = central_extra_bytes(shape_of(entry));
  const bool large_size = entry.size >= kZip64Threshold;
  const bool large_offset = entry.header_offset >= kZip64Threshold;
  const std::uint64_t size = large_size ? kZip64Threshold : entry.size;
  Fields head;
  head.u32(kCentralMagic).u16(0).u16(0).u16(flags_of(entry.size));
  head.u16(0).u16(0).u16(0).u32(entry.crc).u32(size).u32(size);
  head.u16(entry.name.size()).u16(extra_bytes);
  head.u16(0).u16(0).u16(0).u32(0);
  head.u32(large_offset ? kZip64Threshold : entry.header_offset);
  Fields extra;
  if (large_size || large_offset) {
    constexpr std::uint16_t kTagAndLength = 4;
    extra.u16(kZip64Tag).u16(extra_bytes - kTagAndLength);
    if (large_size) {
      extra.u64(entry.size).u64(entry.size);
    }
    if (large_offset) {
      extra.u64(entry.header_offset);
    }
  }
  return head.text() + entry.name + extra.text();
}

std::string end_records(const EndPlan& plan) {
  constexpr std::uint64_t kNeeded = 45;
  const auto narrow = [](std::uint64_t value, std::uint64_t all_ones) {
    return std::min(value, all_ones);
  };
  Fields end;
  end.u32(kEnd64Magic).u64(kEnd64Bytes - 12).u16(plan.made_by).u16(kNeeded);
  end.u32(0).u32(0).u64(plan.count).u64(plan.count);
  end.u64(plan.directory_bytes).u64(plan.directory_offset);
  end.u32(kLocatorMagic).u32(0).u64(plan.end64_offset).u32(1);
  end.u32(kEndMagic).u16(0).u16(0);
  end.u16(narrow(plan.count, 0xFFFF)).u16(narrow(plan.count, 0xFFFF));
  end.u32(narrow(plan.directory_bytes, kZip64Threshold));
  end.u32(narrow(plan.directory_offset, kZip64Threshold)).u16(0);
  return end.text();
}

} // namespace lockstep::ckpt::internal
