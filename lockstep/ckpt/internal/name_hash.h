// SPDX-License-Identifier: BSD-3-Clause
//
// Finding equal names among many without comparing them letter by letter.
// Names come from files: whoever makes them collide gains nothing, since equal
// hashes only send the caller to a sorted comparison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <xxhash.h>

namespace lockstep::ckpt::internal {

inline std::uint64_t name_hash(std::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

/// False if no two of `hashes` are equal: then neither are the names.
inline bool has_equal(std::vector<std::uint64_t> hashes) {
  std::ranges::sort(hashes);
  return std::ranges::adjacent_find(hashes) != hashes.end();
}

} // namespace lockstep::ckpt::internal
