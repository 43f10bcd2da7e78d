// SPDX-License-Identifier: BSD-3-Clause
//
// Elements of stored tensors as numbers, and what a tensor holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The element at `bytes` as a double (int64 may round); nothing for complex
/// and packed sub-byte types. Quantized types give their stored integers.
std::optional<double> read_number(const std::byte* bytes, DType dtype);

/// The element as Python prints it: "0.1", "True", "(1.0+2.0j)", "0x1f".
std::string element_text(const std::byte* bytes, DType dtype);

/// A complex number as Python prints it: "(1.0-0.0j)".
std::string complex_text(double real, double imaginary);

/// What a tensor holds.
struct TensorStats {
  /// Over finite elements; absent if there are none, or for complex types.
  std::optional<double> min = {};
  std::optional<double> max = {};
  std::optional<double> mean = {};
  std::uint64_t elements = 0;
  std::uint64_t nan_count = 0;
  std::uint64_t inf_count = 0;
  /// Its first elements in row-major order.
  std::vector<std::string> head = {};
};

/// Reads the bytes of `tensor`, as stored: the conj and neg flags are not
/// applied. `max_elements` bounds the work for views that repeat elements.
/// Errors: what loading returned; kUnsafe (E_LIMIT).
Result<TensorStats> tensor_stats(
    const Tensor& tensor,
    std::uint64_t head_count = 8,
    std::uint64_t max_elements = 16'000'000);

} // namespace lockstep::ckpt
