// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks of memory between LibTorch and files: each side keeps the other's
// alive, nothing is copied.
#pragma once

#include <memory>

#include <c10/core/Storage.h>

#include "lockstep/ckpt/value.h"

namespace lockstep {

/// A file storage over the bytes of `storage` (CPU).
/// Ownership: holds `storage`; later changes to it are seen.
std::shared_ptr<ckpt::Storage> to_file_storage(
    const c10::Storage& storage,
    ckpt::DType dtype);

/// A LibTorch storage over the bytes of `storage`; the very one that was given
/// if it came from `to_file_storage`.
/// Ownership: holds the file's mapping.
/// Errors: throws what loading returned; kCorrupt if bytes are missing.
c10::Storage to_torch_storage(const ckpt::Storage& storage);

} // namespace lockstep
