// SPDX-License-Identifier: BSD-3-Clause
//
// Writes npz archives of stored arrays: a row of format_table.cpp.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// One record "NAME.npy" for each tensor, as `numpy.save` writes it; elements
/// start at multiples of 64 bytes. A bare tensor is called "arr_0".
/// Errors: as `save`; kUnsupported (E_NOT_TENSOR) for a value that is no
/// tensor, kInvalidArgument (E_SHARED_TENSOR, E_SAME_NAME, E_NAME).
Status write_npz(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
