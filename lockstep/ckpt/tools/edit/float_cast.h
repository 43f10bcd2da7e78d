// SPDX-License-Identifier: BSD-3-Clause
//
// Floating-point elements from one type to another, rounding to nearest even
// as PyTorch's `tensor.to(dtype)` does.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {

/// The real type of a complex number's two parts; other types are their own.
DType part_dtype(DType dtype);

/// True for float64, float32, float16 and bfloat16.
bool is_castable(DType dtype);

/// Converts whole elements of `in` to `out`, which has room for as many.
/// Both types must be castable. Returns whether a finite number is beyond what
/// `to` can hold, and so became infinite.
bool cast_floats(ByteSpan in, DType from, std::span<std::byte> out, DType to);

} // namespace lockstep::ckpt::internal
