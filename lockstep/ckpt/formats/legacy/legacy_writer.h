// SPDX-License-Identifier: BSD-3-Clause
//
// Writer of the stream that `torch.save(_use_new_zipfile_serialization=False)`
// writes, for `save`. Only the keys differ: PyTorch takes addresses, here they
// are "0", "1", ..., so that equal trees give equal bytes.
#pragma once

#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Writes what `torch.load(weights_only=True)` of every version since 0.4
/// reads, as far as it knows the dtypes. Errors: as `save`; kUnsupported also
/// for dtypes that need untyped storages (float8, uint16).
Status write_legacy(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
