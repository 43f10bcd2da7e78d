// SPDX-License-Identifier: BSD-3-Clause
//
// The header of an npy array: magic, version, length, and a Python literal of
// three keys, which is read by a small grammar and never evaluated.
//   auto header = read_npy_header(bytes, file_bytes);
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/numpy_dtype.h"

namespace lockstep::ckpt {

inline constexpr std::string_view kNpyMagic("\x93NUMPY");
/// How the name of an array's record in an npz archive ends.
inline constexpr std::string_view kNpySuffix = ".npy";
/// Units: bytes of a header with magic, version and length in front.
inline constexpr std::uint64_t kMaxNpyHead = kMaxNpyHeader + 12;

/// A checked header.
struct NpyHeader {
  NumpyDType type = {};
  bool fortran_order = false;
  std::vector<std::int64_t> shape = {};
  /// Units: bytes from the start of the array to its elements.
  std::uint64_t data_offset = 0;
  /// Units: bytes of the elements.
  std::uint64_t data_bytes = 0;
};

/// True if `head` starts like an array.
bool is_npy(ByteSpan head);

/// Reads the header at the front of `head`; `total` counts the bytes of the
/// whole array, of which `head` may be the first `kMaxNpyHead`.
/// Errors: kCorrupt (E_NPY_HEADER, E_TRUNCATED, E_OVERFLOW, E_RANK), kUnsafe
/// (E_NPY_OBJECT), kUnsupported (E_NPY_HEADER; E_DTYPE for what NumPy takes as
/// bytes, without any objects); offsets from the array's start.
Result<NpyHeader> read_npy_header(ByteSpan head, std::uint64_t total);

/// Where an array ends whose elements NumPy takes as bytes: numbers, texts,
/// dates, structures of them. Units: bytes from the array's start.
/// Errors: as above, but never E_DTYPE.
Result<std::uint64_t> npy_end(ByteSpan head, std::uint64_t total);

/// Where the elements begin, whatever their type is. Units: bytes from the
/// array's start. Errors: as of the header's length above.
Result<std::uint64_t> npy_data_offset(ByteSpan head, std::uint64_t total);

} // namespace lockstep::ckpt
