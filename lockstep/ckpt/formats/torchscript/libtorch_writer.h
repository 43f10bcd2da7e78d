// SPDX-License-Identifier: BSD-3-Clause
//
// Writes archives that LibTorch reads: `torch::load(module, path)` in C++,
// `torch.jit.load(path)` in Python. A row of format_table.cpp.
#pragma once

#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/value_changes.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {

/// As `save` with the format "libtorch". Dotted names become modules; a list of
/// tensors reads as `std::vector<Tensor>`, a tensor as `Tensor`.
/// Errors: as `save`; kUnsupported (E_NOT_SCRIPT) for a value LibTorch has no
/// type for; kInvalidArgument (E_NOT_SCRIPT) if two values get one name.
Status write_libtorch(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

/// Tuples for which LibTorch has no type, and the like.
/// Errors: as `write_libtorch`.
Result<std::vector<ValueChange>> libtorch_changes(const Value& root);

} // namespace lockstep::ckpt
