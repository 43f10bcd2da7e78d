// SPDX-License-Identifier: BSD-3-Clause
//
// NumPy's npy arrays and npz archives: what their rows of format_table.cpp
// name.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// True if the bytes start like an array.
Result<bool> claims_npy(const ReadInput& input);
/// The root is the tensor; in Fortran order it has its strides.
/// Errors: as `read_npy_header`.
Result<Checkpoint> read_npy(const ReadInput& input);

/// True for a zip archive whose first record is an array.
Result<bool> claims_npz(const ReadInput& input);
/// The root is a dict of lazy tensors by name, without ".npy".
/// Errors: as `ZipReader::open` and `read_npy_header`, with the record.
Result<Checkpoint> read_npz(const ReadInput& input);

/// The header as `numpy.save` writes it for a row-major array.
std::string npy_header_text(
    DType dtype,
    const std::vector<std::int64_t>& shape);

/// One record "NAME.npy" for each tensor, as `numpy.save` writes it; elements
/// start at multiples of 64 bytes. A bare tensor is called "arr_0".
/// Errors: as `save`; kUnsupported (E_NOT_TENSOR) for a value that is no
/// tensor, kInvalidArgument (E_SHARED_TENSOR, E_SAME_NAME, E_NAME).
Status write_npz(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
