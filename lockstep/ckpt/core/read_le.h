// SPDX-License-Identifier: BSD-3-Clause
//
// Little-endian numbers in bytes of a file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

/// Reads little-endian integers from bytes that were checked to be there.
template <class T>
T read_le(ByteSpan bytes, std::uint64_t offset) {
  T value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, &bytes[offset], sizeof(T));
    return value;
  }
  for (std::size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(
        (static_cast<std::uint64_t>(value) << 8) |
        static_cast<std::uint64_t>(bytes[offset + i]));
  }
  return value;
}

/// The number in the first `size` bytes, 1 to 8, which must be there.
inline std::uint64_t read_number(ByteSpan bytes, std::size_t size) {
  constexpr std::size_t kWidest = 8;
  if (bytes.size() >= kWidest) {
    return read_le<std::uint64_t>(bytes, 0) &
           (~std::uint64_t{0} >> (8 * (kWidest - size)));
  }
  std::uint64_t number = 0;
  for (std::size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<std::uint64_t>(bytes[i]);
  }
  return number;
}

/// Appends an integer in little-endian order.
template <class Integer>
void append_le(std::string& text, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    text.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  }
}

} // namespace lockstep::ckpt::internal
