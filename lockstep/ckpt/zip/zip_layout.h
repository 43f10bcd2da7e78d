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

inline constexpr std::uint32_t kLocalMagic = 0x04034b50;
inline constexpr std::uint32_t kDescriptorMagic = 0x08074b50;
inline constexpr std::uint32_t kCentralMagic = 0x02014b50;
inline constexpr std::uint32_t kEnd64Magic = 0x06064b50;
inline constexpr std::uint32_t kLocatorMagic = 0x07064b50;
inline constexpr std::uint32_t kEndMagic = 0x06054b50;

/// Bit of the flags: sizes and checksum follow the payload.
inline constexpr std::uint16_t kDescriptorFlag = 0x0008;

/// Fixed parts of the structures. Units: bytes.
inline constexpr std::uint64_t kLocalBytes = 30;
inline constexpr std::uint64_t kCentralBytes = 46;
inline constexpr std::uint64_t kEnd64Bytes = 56;
inline constexpr std::uint64_t kLocatorBytes = 20;
inline constexpr std::uint64_t kEndBytes = 22;

/// Sizes and offsets from here on are kept in 64-bit fields.
inline constexpr std::uint64_t kZip64Threshold = 0xFFFFFFFF;
/// Tag of the zip64 extra field, and of PyTorch's padding ("FB").
inline constexpr std::uint16_t kZip64Tag = 1;
inline constexpr std::uint16_t kPaddingTag = 0x4246;

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
