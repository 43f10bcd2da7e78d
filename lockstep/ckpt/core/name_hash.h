// SPDX-License-Identifier: BSD-3-Clause
//
// Finding equal names among many without comparing them letter by letter.
// Names come from files: whoever makes them collide gains nothing, since equal
// hashes only send the caller to a sorted comparison (hash_order.h).
#pragma once

#include <cstdint>
#include <string_view>

#include <xxhash.h>

namespace lockstep::ckpt::internal {

inline std::uint64_t name_hash(std::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

} // namespace lockstep::ckpt::internal
