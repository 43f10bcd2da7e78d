// SPDX-License-Identifier: BSD-3-Clause
//
// The structures of a zip file, with the names of their fields: nobody else
// knows a magic number of zip, or where in a structure a field lies.
//   const auto header = read_struct<LocalHeader>(bytes);
//   if (header && header->method == kStored) ...
//   text += to_bytes(EndRecord{.count = 3});
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/read_le.h"

namespace lockstep::ckpt {

/// Bits of the flags: encrypted; sizes and checksum follow the payload (in a
/// descriptor); patched data; strong encryption; names in UTF-8; masked fields.
inline constexpr std::uint16_t kEncryptedFlag = 0x0001;
inline constexpr std::uint16_t kDescriptorFlag = 0x0008;
inline constexpr std::uint16_t kPatchedFlag = 0x0020;
inline constexpr std::uint16_t kStronglyEncryptedFlag = 0x0040;
inline constexpr std::uint16_t kUtf8Flag = 0x0800;
inline constexpr std::uint16_t kMaskedFlag = 0x2000;

/// Compression methods.
inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

/// What a narrow field holds if its value is in a 64-bit one: sizes and
/// offsets, and counts.
inline constexpr std::uint64_t kZip64Threshold = 0xFFFFFFFF;
inline constexpr std::uint64_t kZip64Count = 0xFFFF;

/// Tags of extra fields: of zip64, and of PyTorch's padding ("FB").
inline constexpr std::uint16_t kZip64Tag = 1;
inline constexpr std::uint16_t kPaddingTag = 0x4246;

/// In front of each payload; name and extra fields follow.
struct LocalHeader {
  static constexpr std::uint32_t kMagic = 0x04034b50;
  std::uint16_t needed = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint16_t time = 0;
  std::uint16_t date = 0;
  std::uint32_t crc = 0;
  std::uint32_t compressed_size = 0;
  std::uint32_t size = 0;
  std::uint16_t name_bytes = 0;
  std::uint16_t extra_bytes = 0;

  template <class Self>
  static constexpr auto fields(Self& self) {
    return std::tie(
        self.needed,
        self.flags,
        self.method,
        self.time,
        self.date,
        self.crc,
        self.compressed_size,
        self.size,
        self.name_bytes,
        self.extra_bytes);
  }
};

/// Behind a payload, if the flags say so: with sizes of 32 or of 64 bits.
template <class Size>
struct BasicDataDescriptor {
  static constexpr std::uint32_t kMagic = 0x08074b50;
  std::uint32_t crc = 0;
  Size compressed_size = 0;
  Size size = 0;

  template <class Self>
  static constexpr auto fields(Self& self) {
    return std::tie(self.crc, self.compressed_size, self.size);
  }
};
using DataDescriptor = BasicDataDescriptor<std::uint32_t>;
using DataDescriptor64 = BasicDataDescriptor<std::uint64_t>;

/// An entry of the directory; name, extra fields and comment follow.
struct CentralHeader {
  static constexpr std::uint32_t kMagic = 0x02014b50;
  std::uint16_t made_by = 0;
  std::uint16_t needed = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint16_t time = 0;
  std::uint16_t date = 0;
  std::uint32_t crc = 0;
  std::uint32_t compressed_size = 0;
  std::uint32_t size = 0;
  std::uint16_t name_bytes = 0;
  std::uint16_t extra_bytes = 0;
  std::uint16_t comment_bytes = 0;
  std::uint16_t disk = 0;
  std::uint16_t internal_attributes = 0;
  std::uint32_t external_attributes = 0;
  std::uint32_t header_offset = 0;

  template <class Self>
  static constexpr auto fields(Self& self) {
    return std::tie(
        self.made_by,
        self.needed,
        self.flags,
        self.method,
        self.time,
        self.date,
        self.crc,
        self.compressed_size,
        self.size,
        self.name_bytes,
        self.extra_bytes,
        self.comment_bytes,
        self.disk,
        self.internal_attributes,
        self.external_attributes,
        self.header_offset);
  }
};

/// Behind the directory of a file that needs 64 bits, and of every one that
/// PyTorch writes.
struct End64Record {
  static constexpr std::uint32_t kMagic = 0x06064b50;
  /// Bytes in front of what `bytes` counts: the magic number and itself.
  static constexpr std::uint64_t kUncounted = 12;
  std::uint64_t bytes = 0;
  std::uint16_t made_by = 0;
  std::uint16_t needed = 0;
  std::uint32_t disk = 0;
  std::uint32_t directory_disk = 0;
  std::uint64_t count_on_disk = 0;
  std::uint64_t count = 0;
  std::uint64_t directory_bytes = 0;
  std::uint64_t directory_offset = 0;

  template <class Self>
  static constexpr auto fields(Self& self) {
    return std::tie(
        self.bytes,
        self.made_by,
        self.needed,
        self.disk,
        self.directory_disk,
        self.count_on_disk,
        self.count,
        self.directory_bytes,
        self.directory_offset);
  }
};

/// Between the two end records: where the first one is.
struct End64Locator {
  static constexpr std::uint32_t kMagic = 0x07064b50;
  std::uint32_t disk = 0;
  std::uint64_t end64_offset = 0;
  std::uint32_t disks = 0;

  template <class Self>
  static constexpr auto fields(Self& self) {
    return std::tie(self.disk, self.end64_offset, self.disks);
  }
};

/// At the end of every zip file; a comment may follow.
struct EndRecord {
  static constexpr std::uint32_t kMagic = 0x06054b50;
  std::uint16_t disk = 0;
  std::uint16_t directory_disk = 0;
  std::uint16_t count_on_disk = 0;
  std::uint16_t count = 0;
  std::uint32_t directory_bytes = 0;
  std::uint32_t directory_offset = 0;
  std::uint16_t comment_bytes = 0;

  template <class Self>
  static constexpr auto fields(Self& self) {
    return std::tie(
        self.disk,
        self.directory_disk,
        self.count_on_disk,
        self.count,
        self.directory_bytes,
        self.directory_offset,
        self.comment_bytes);
  }
};

/// Size of a structure without what follows it. Units: bytes.
template <class Struct>
inline constexpr std::uint64_t kStructBytes = [] {
  const Struct any;
  return std::apply(
      [](const auto&... fields) {
        return (sizeof(Struct::kMagic) + ... + sizeof(fields));
      },
      Struct::fields(any));
}();

/// The structure at the start of `bytes`; nothing if these are too few, or its
/// magic number is not there.
template <class Struct>
std::optional<Struct> read_struct(ByteSpan bytes) {
  if (bytes.size() < kStructBytes<Struct> ||
      internal::read_le<std::uint32_t>(bytes, 0) != Struct::kMagic) {
    return std::nullopt;
  }
  Struct result;
  std::uint64_t at = sizeof(Struct::kMagic);
  const auto read = [&]<class Field>(Field& field) {
    field = internal::read_le<Field>(bytes, at);
    at += sizeof(Field);
  };
  std::apply(
      [&read](auto&... fields) { (read(fields), ...); },
      Struct::fields(result));
  return result;
}

using internal::append_le;

/// The structure as it is in a file.
template <class Struct>
std::string to_bytes(const Struct& value) {
  std::string text;
  append_le(text, Struct::kMagic);
  std::apply(
      [&text](const auto&... fields) { (append_le(text, fields), ...); },
      Struct::fields(value));
  return text;
}

/// What every structure of this kind starts with.
template <class Struct>
std::string magic_of() {
  return to_bytes(Struct()).substr(0, sizeof(Struct::kMagic));
}

/// How many of the first four bytes are those that a zip file starts with.
std::size_t zip_magic_prefix(ByteSpan bytes);

/// True if `bytes` start with a record of a zip file.
bool starts_like_zip(ByteSpan bytes);

/// True if the last bytes are an end record without a comment. Errors: kIo.
Result<bool> ends_like_zip(ByteSource& source);

/// The payload of the first extra field with this tag; nothing if there is
/// none, or one before it is cut.
std::optional<ByteSpan> find_extra_field(ByteSpan fields, std::uint16_t tag);

/// Replaces those of `fields` that are saturated by the values of the zip64
/// field, which holds them alone, in this order. False if it lacks some; then
/// nothing is replaced.
bool take_wide_fields(ByteSpan extra, std::span<std::uint64_t* const> fields);

/// A local header with what follows it, up to the payload.
struct LocalRecord {
  LocalHeader header = {};
  /// With the archive's root.
  std::string name = {};
  /// Units: bytes. Each of the zip64 field if the header refers to it.
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  /// First byte of the payload, at most the size of the source.
  std::uint64_t data_offset = 0;

  /// The sizes are unknown before the end of the payload.
  [[nodiscard]] bool has_descriptor() const noexcept {
    return (header.flags & kDescriptorFlag) != 0;
  }
};

/// The local header at `offset`; nothing if there is none, it is cut, or its
/// name is too long. Errors: kIo.
Result<std::optional<LocalRecord>> read_local_record(
    ByteSource& source,
    std::uint64_t offset);

} // namespace lockstep::ckpt
