// SPDX-License-Identifier: BSD-3-Clause
//
// Gzip decoding into bytes that several owners share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep {

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
