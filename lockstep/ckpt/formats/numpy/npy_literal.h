// SPDX-License-Identifier: BSD-3-Clause
//
// The Python literal in the header of an npy array: {'descr': '<f4',
// 'fortran_order': False, 'shape': (2, 3), }. For npy_header.cpp only.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/core/numpy_dtype.h"

namespace lockstep::ckpt::internal {

/// A size that a `descr` does not tell.
inline constexpr std::uint64_t kUnknownBytes =
    std::numeric_limits<std::uint64_t>::max();

/// What it says. No element is a Python object.
struct NpyLiteral {
  /// Nothing if PyTorch has no such type.
  std::optional<NumpyDType> type = {};
  /// As it is written.
  std::string descr = {};
  /// Units: bytes from the array's start.
  std::uint64_t descr_offset = 0;
  /// Units: bytes of an element of any type; also kUnknownBytes for more.
  std::uint64_t item_bytes = 0;
  bool fortran_order = false;
  std::vector<std::int64_t> shape = {};
};

/// Reads `text`, which lies at `base` in the array. Errors: as
/// `read_npy_header`.
Result<NpyLiteral> read_npy_literal(std::string_view text, std::uint64_t base);

/// Of all elements, empty dimensions aside: strides must not overflow. Nothing
/// if they do.
std::optional<std::uint64_t> npy_array_bytes(
    std::uint64_t item_bytes,
    const std::vector<std::int64_t>& shape);

/// Every error of an array. Units of `offset`: bytes from the array's start.
Error bad_npy(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::uint64_t offset);

} // namespace lockstep::ckpt::internal
