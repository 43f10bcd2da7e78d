// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a safetensors file: u64 length, JSON, then the bytes of the
// tensors without gaps. Stricter than the safetensors package: a key that
// appears twice is an error (docs/formats/flat.md lists what else).
//   auto header = read_safetensors_header(*source, limits);
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_dtype.h"

namespace lockstep::ckpt {

/// The header's length in front of it. Units: bytes.
inline constexpr std::uint64_t kSafetensorsLengthBytes = 8;

/// One tensor of the header.
struct SafetensorsEntry {
  std::string name = {};
  const SafetensorsDType* type = nullptr;
  /// In elements; those of F4 are half a byte each.
  std::vector<std::int64_t> shape = {};
  /// Units: bytes from the start of the data.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  /// Units: bytes from the start of the file, of its name in the header.
  std::uint64_t header_offset = 0;
};

/// A checked header.
struct SafetensorsHeader {
  /// Units: bytes from the start of the file.
  std::uint64_t data_offset = 0;
  std::vector<std::pair<std::string, std::string>> metadata = {};
  /// In the order of their bytes; they tile the data.
  std::vector<SafetensorsEntry> tensors = {};
  /// W_SAFETENSORS_FIELD for unknown fields and repeated keys of metadata.
  std::vector<Warning> warnings = {};
};

/// Reads the header; the data is not touched.
/// Errors: kCorrupt (E_SAFETENSORS_HEADER, E_SAFETENSORS_LAYOUT,
/// E_SAFETENSORS_DUPLICATE, E_OVERFLOW, E_RANK), kUnsupported (E_DTYPE),
/// kUnsafe (E_LIMIT), kIo; with the offset in the file.
Result<SafetensorsHeader> read_safetensors_header(
    ByteSource& source,
    const Limits& limits);

} // namespace lockstep::ckpt
