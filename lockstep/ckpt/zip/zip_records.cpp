// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_records.h"

#include <algorithm>

#include "lockstep/ckpt/zip/zip_layout.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

std::uint16_t flags_of(std::uint64_t size) {
  return size == 0 ? kUtf8Flag : kUtf8Flag | kDescriptorFlag;
}

// All ones in place of what a 64-bit field holds.
std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min(value, kZip64Threshold));
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
  // CRC and sizes follow the payload.
  std::string text = to_bytes(LocalHeader{
      .flags = flags_of(entry.size),
      .name_bytes = static_cast<std::uint16_t>(entry.name.size()),
      .extra_bytes = layout.extra_bytes});
  text += entry.name;
  if (layout.zip64_bytes != 0) {
    append_le(text, kZip64Tag);
    append_le(text, layout.zip64_bytes);
    if (layout.large_size) {
      append_le(text, entry.size);
      append_le(text, std::uint64_t{0});
    }
    if (layout.large_offset) {
      append_le(text, entry.header_offset);
    }
  }
  append_le(text, kPaddingTag);
  append_le(text, layout.padding);
  text.append(layout.padding, 'Z');
  return text;
}

std::string descriptor(const ZipEntryPlan& entry) {
  const std::uint64_t bytes = local_layout(shape_of(entry)).descriptor_bytes;
  if (bytes == 0) {
    return {};
  }
  if (bytes == kStructBytes<DataDescriptor64>) {
    return to_bytes(DataDescriptor64{
        .crc = entry.crc,
        .compressed_size = entry.size,
        .size = entry.size});
  }
  const auto size = static_cast<std::uint32_t>(entry.size);
  return to_bytes(
      DataDescriptor{.crc = entry.crc, .compressed_size = size, .size = size});
}

std::string central_entry(const ZipEntryPlan& entry) {
  const std::uint16_t extra_bytes = central_extra_bytes(shape_of(entry));
  const std::uint32_t size = narrow(entry.size);
  std::string text = to_bytes(CentralHeader{
      .flags = flags_of(entry.size),
      .crc = entry.crc,
      .compressed_size = size,
      .size = size,
      .name_bytes = static_cast<std::uint16_t>(entry.name.size()),
      .extra_bytes = extra_bytes,
      .header_offset = narrow(entry.header_offset)});
  text += entry.name;
  if (extra_bytes != 0) {
    constexpr std::uint16_t kTagAndLength = 4;
    append_le(text, kZip64Tag);
    append_le(text, static_cast<std::uint16_t>(extra_bytes - kTagAndLength));
    if (entry.size >= kZip64Threshold) {
      append_le(text, entry.size);
      append_le(text, entry.size);
    }
    if (entry.header_offset >= kZip64Threshold) {
      append_le(text, entry.header_offset);
    }
  }
  return text;
}

std::string end_records(const EndPlan& plan) {
  // As PyTorch has them.
  constexpr std::uint16_t kMadeBy = 0x031E;
  constexpr std::uint16_t kNeeded = 45;
  const auto count =
      static_cast<std::uint16_t>(std::min(plan.count, kZip64Count));
  return to_bytes(End64Record{
             .bytes = kStructBytes<End64Record> - End64Record::kUncounted,
             .made_by = kMadeBy,
             .needed = kNeeded,
             .count_on_disk = plan.count,
             .count = plan.count,
             .directory_bytes = plan.directory_bytes,
             .directory_offset = plan.directory_offset}) +
         to_bytes(End64Locator{.end64_offset = plan.end64_offset, .disks = 1}) +
         to_bytes(EndRecord{
             .count_on_disk = count,
             .count = count,
             .directory_bytes = narrow(plan.directory_bytes),
             .directory_offset = narrow(plan.directory_offset)});
}

} // namespace lockstep::ckpt::internal
