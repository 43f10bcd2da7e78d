// SPDX-License-Identifier: BSD-3-Clause
//
// Reader of the stream that torch.save wrote from 0.1.10 to 1.5, and still
// writes with `_use_new_zipfile_serialization=False`: five pickles, then the
// bytes of the storages. For `load`.
#pragma once

#include "lockstep/ckpt/format_table.h"

namespace lockstep::ckpt {

/// True if the first pickle is a long integer, the magic number or a wrong one.
Result<bool> claims_legacy(const ReadInput& input);

/// Errors: as `load`, with offsets in the file; E_LEGACY_MAGIC,
/// E_LEGACY_VERSION, E_LEGACY_KEYS, E_LEGACY_NUMEL, E_LEGACY_SHORT.
Result<Checkpoint> read_legacy(const ReadInput& input);

} // namespace lockstep::ckpt
