// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes in memory that several owners share, and gzip decoding into them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/base/fs.h"

namespace lockstep {

/// Read-only bytes. Ownership: shared; a mapped file or a decoded buffer.
struct SharedBytes {
  std::shared_ptr<const std::uint8_t> data = {};
  /// Units: bytes.
  std::uint64_t size = 0;
};

/// True if `bytes` start like a gzip stream.
bool is_gzip(ByteSpan bytes);

/// Largest output of `gunzip`, against files made to fill the memory.
inline constexpr std::uint64_t kMaxDecodedBytes = 4ULL << 30;

/// Decodes a gzip file, also one of several members, with its checksums.
/// `path` is for messages only.
/// Errors: throws kCorrupt if `input` is cut, damaged or followed by other
/// bytes; kUnsafe if it holds more than `max_bytes`.
SharedBytes gunzip(
    ByteSpan input,
    const std::string& path,
    std::uint64_t max_bytes = kMaxDecodedBytes);

} // namespace lockstep
