// SPDX-License-Identifier: BSD-3-Clause
//
// The arithmetic of PyTorch's zip files as pure functions: where a payload
// starts, which fields grow to 64 bits, how many bytes each structure takes.
// Writer, expected sizes and tests share it.
//   LocalLayout l = local_layout({.header_offset = 245, .name_bytes = 20,
//                                 .size = 1});
#pragma once

#include <cstdint>

namespace lockstep::ckpt {

/// Payloads start at multiples of this.
inline constexpr std::uint64_t kStorageAlignment = 64;

/// What decides the layout of one record. Units: bytes.
struct RecordShape {
  std::uint64_t header_offset = 0;
  /// Length of the name with root and slash.
  std::uint64_t name_bytes = 0;
  std::uint64_t size = 0;
};

/// Where the parts of one record lie. Units: bytes.
struct LocalLayout {
  /// True if the size, or the header's offset, needs 64 bits.
  bool large_size = false;
  bool large_offset = false;
  /// Payload of the zip64 extra field: 0 (no field), 8, 16 or 24.
  std::uint16_t zip64_bytes = 0;
  /// `Z` bytes after the tag and length of the padding field.
  std::uint16_t padding = 0;
  /// Length of all extra fields.
  std::uint16_t extra_bytes = 0;
  std::uint64_t payload_offset = 0;
  /// 0, 16 or 24.
  std::uint64_t descriptor_bytes = 0;
  /// First byte after the record.
  std::uint64_t end = 0;
};

/// PyTorch's rules for a local header and what follows it.
LocalLayout local_layout(const RecordShape& shape);

/// Length of the zip64 extra field of a central entry, with tag: 0, 12, 20, 28.
std::uint16_t central_extra_bytes(const RecordShape& shape);

/// Length of a central directory entry.
std::uint64_t central_entry_bytes(const RecordShape& shape);

} // namespace lockstep::ckpt
