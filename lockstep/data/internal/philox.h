// SPDX-License-Identifier: BSD-3-Clause
//
// Philox 4x32 with 10 rounds, the counter-based generator of Salmon, Moraes,
// Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). The
// same counter and key give the same numbers anywhere, in any order, so no
// state is shared between threads.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Four random words for `counter` under `key`.
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9; // golden ratio
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85; // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    const auto high0 = static_cast<std::uint32_t>(product0 >> 32);
    const auto high1 = static_cast<std::uint32_t>(product1 >> 32);
    counter = {
        high1 ^ counter[1] ^ key[0],
        static_cast<std::uint32_t>(product1),
        high0 ^ counter[3] ^ key[1],
        static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

/// A whole number in [0, bound) from one random word. The bias is below
/// bound / 2^32.
constexpr std::uint32_t scale_to(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>(std::uint64_t{word} * bound >> 32);
}

} // namespace lockstep
