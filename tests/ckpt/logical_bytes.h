// SPDX-License-Identifier: BSD-3-Clause
//
// The elements of a stored tensor in row-major order, conj and neg resolved:
// what Python's `tensor.contiguous()` holds.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/zip/crc32.h"

namespace lockstep::ckpt {

/// Changes the sign of float `part` (0 real, 1 imaginary) of one element.
inline void flip_sign(std::string& element, std::size_t part) {
  const bool is_complex = element.size() == 8;
  const std::size_t last = is_complex ? 4 * part + 3 : element.size() - 1;
  element[last] = static_cast<char>(element[last] ^ 0x80);
}

inline Result<std::string> logical_bytes(const Tensor& tensor) {
  LOCKSTEP_ASSIGN(const ByteSpan bytes, tensor.storage->source->load());
  const std::size_t size = dtype_info(tensor.dtype).size;
  std::string out;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t at = tensor.offset;
    std::int64_t rest = i;
    for (std::size_t d = tensor.sizes.size(); d-- > 0;) {
      at += rest % tensor.sizes[d] * tensor.strides[d];
      rest /= tensor.sizes[d];
    }
    const auto* begin = reinterpret_cast<const char*>(bytes.data()) +
                        static_cast<std::size_t>(at) * size;
    std::string element(begin, size);
    if (tensor.is_conj) {
      flip_sign(element, 1);
    }
    if (tensor.is_neg) {
      flip_sign(element, 0);
    }
    out += element;
  }
  return out;
}

inline Result<std::uint32_t> logical_crc(const Tensor& tensor) {
  LOCKSTEP_ASSIGN(const std::string bytes, logical_bytes(tensor));
  return crc32(as_byte_span(bytes));
}

} // namespace lockstep::ckpt
