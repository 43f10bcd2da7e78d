// SPDX-License-Identifier: BSD-3-Clause
//
// Reads PyTorch's zip container (1.6 and newer): rows of format_table.h.
#pragma once

#include "lockstep/ckpt/format_table.h"

namespace lockstep::ckpt {

/// True if the bytes start like an archive, or an archive ends them, with
/// foreign bytes in front.
Result<bool> claims_zip(const ReadInput& input);

/// Errors: kCorrupt, kUnsupported, kUnsafe, kIo.
Result<Checkpoint> read_zip(const ReadInput& input);

} // namespace lockstep::ckpt
