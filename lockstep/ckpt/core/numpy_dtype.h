// SPDX-License-Identifier: BSD-3-Clause
//
// Element types of NumPy files. Types that NumPy does not have are written as
// a structure of one field named after PyTorch's type, so that nothing is
// lost: `array['bfloat16']` gives the bits as uint16.
//   numpy_descr(DType::kFloat32)    // "'<f4'"
//   numpy_descr(DType::kBFloat16)   // "[('bfloat16', '<u2')]"
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {

/// What a `descr` means to us.
struct NumpyDType {
  DType dtype = DType::kFloat32;
  /// True if the bytes of each number are in the other order.
  bool is_big_endian = false;
};

/// The type's `descr` as a Python literal.
std::string numpy_descr(DType dtype);

/// Reads "<f4", also "<V2", which ml_dtypes writes for bfloat16.
std::optional<NumpyDType> numpy_dtype(std::string_view descr);

/// The same for a structure of one field.
std::optional<NumpyDType> numpy_dtype(
    std::string_view field,
    std::string_view descr);

/// True if elements are Python objects, hence pickles.
bool is_numpy_object(std::string_view descr);

/// True if NumPy takes the elements as bytes: numbers, texts, dates, unknown
/// bytes. A type that is neither this nor objects may be anything.
bool is_plain_numpy(std::string_view descr);

/// Units: bytes of an element of such a type; the greatest number if `descr`
/// does not tell.
std::uint64_t plain_numpy_bytes(std::string_view descr);

} // namespace lockstep::ckpt
