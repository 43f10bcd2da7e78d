// SPDX-License-Identifier: BSD-3-Clause
//
// A number for bytes: the same for the same bytes, another one for others but
// for one in 2^64. Against mistakes, not against forgers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lockstep::internal {

/// `hash` is that of what comes before. Depends on the machine's byte order.
inline std::uint64_t hash_of(
    const void* data,
    std::size_t size,
    std::uint64_t hash = 0x9E3779B97F4A7C15ULL) {
  constexpr std::uint64_t kFactor = 0xFF51AFD7ED558CCDULL; // odd
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  hash ^= size * kFactor;
  while (size > 0) {
    const std::size_t step = std::min<std::size_t>(size, 8);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, step);
    hash = (std::rotl(hash, 29) ^ word) * kFactor;
    hash ^= hash >> 32;
    bytes += step;
    size -= step;
  }
  return hash;
}

} // namespace lockstep::internal
