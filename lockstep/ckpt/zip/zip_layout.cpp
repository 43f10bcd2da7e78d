// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_layout.h"

#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

constexpr std::uint64_t kFieldHead = 4; // tag and length of an extra field

bool is_large(std::uint64_t value) {
  return value >= kZip64Threshold;
}

} // namespace

LocalLayout local_layout(const RecordShape& shape) {
  LocalLayout layout;
  layout.large_size = is_large(shape.size);
  layout.large_offset = is_large(shape.header_offset);
  layout.zip64_bytes = static_cast<std::uint16_t>(
      (layout.large_size ? 16 : 0) + (layout.large_offset ? 8 : 0));

  std::uint64_t start =
      shape.header_offset + kStructBytes<LocalHeader> + shape.name_bytes;
  const std::uint64_t after_name = start;
  if (layout.zip64_bytes != 0) {
    start += kFieldHead + layout.zip64_bytes;
  }
  start += kFieldHead;
  layout.payload_offset =
      (start + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment;
  layout.padding = static_cast<std::uint16_t>(layout.payload_offset - start);
  layout.extra_bytes =
      static_cast<std::uint16_t>(layout.payload_offset - after_name);

  if (shape.size != 0) {
    layout.descriptor_bytes = layout.large_size || layout.large_offset
                                  ? kStructBytes<DataDescriptor64>
                                  : kStructBytes<DataDescriptor>;
  }
  layout.end = layout.payload_offset + shape.size + layout.descriptor_bytes;
  return layout;
}

std::uint16_t central_extra_bytes(const RecordShape& shape) {
  const int fields =
      (is_large(shape.size) ? 16 : 0) + (is_large(shape.header_offset) ? 8 : 0);
  return static_cast<std::uint16_t>(
      fields == 0 ? 0 : fields + static_cast<int>(kFieldHead));
}

std::uint64_t central_entry_bytes(const RecordShape& shape) {
  return kStructBytes<CentralHeader> + shape.name_bytes +
         central_extra_bytes(shape);
}

} // namespace lockstep::ckpt
