// SPDX-License-Identifier: BSD-3-Clause
//
// Reads NumPy's npy arrays and npz archives: rows of format_table.cpp.
#pragma once

#include "lockstep/ckpt/format.h"

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

} // namespace lockstep::ckpt
