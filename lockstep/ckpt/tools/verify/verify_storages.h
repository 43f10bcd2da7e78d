// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of a checkpoint whose container has no checksums: every storage is
// read to its end.
#pragma once

#include "lockstep/ckpt/verify.h"

namespace lockstep::ckpt::internal {

/// Reads all bytes of `file`, block by block.
VerifyReport verify_storages(const Checkpoint& file);

} // namespace lockstep::ckpt::internal
