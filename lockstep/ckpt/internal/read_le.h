// SPDX-License-Identifier: BSD-3-Clause
//
// Little-endian numbers in bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

/// Reads little-endian integers from bytes that were checked to be there.
template <class T>
T read_le(ByteSpan bytes, std::uint64_t offset) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(
        (static_cast<std::uint64_t>(value) << 8) |
        static_cast<std::uint64_t>(bytes[offset + i]));
  }
  return value;
}

} // namespace lockstep::ckpt::internal
