// SPDX-License-Identifier: BSD-3-Clause
//
// CRC-32 as zip uses it (polynomial 0xEDB88320).
//   std::uint32_t crc = crc32(first); crc = crc32(second, crc);
#pragma once

#include <cstdint>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

/// CRC of `bytes`, continued from `seed` (the CRC of what came before).
std::uint32_t crc32(ByteSpan bytes, std::uint32_t seed = 0);

} // namespace lockstep::ckpt
