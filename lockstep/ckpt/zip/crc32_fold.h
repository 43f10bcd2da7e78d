// SPDX-License-Identifier: BSD-3-Clause
//
// CRC-32 by carry-less products of 512 bits, where the processor has them:
// about three times the rate of products of 128 bits. What is shorter than one
// of its blocks goes byte by byte.
#pragma once

#include <cstdint>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

/// Units: bytes of a block; folding starts to pay at a few of them.
inline constexpr std::size_t kFoldBytes = 256;

/// True if this processor can.
bool can_fold_crc32();

/// Goes on from `seed` over a few bytes, one by one.
std::uint32_t short_crc32(ByteSpan bytes, std::uint32_t seed);

/// Goes on from the CRC-32 `seed` over `bytes`, a multiple of `kFoldBytes` and
/// not empty. Only if `can_fold_crc32()`.
std::uint32_t fold_crc32(ByteSpan bytes, std::uint32_t seed);

} // namespace lockstep::ckpt::internal
