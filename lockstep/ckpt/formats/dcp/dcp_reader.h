// SPDX-License-Identifier: BSD-3-Clause
//
// Reads folders of `torch.distributed.checkpoint`: a row of format_table.cpp.
#pragma once

#include "lockstep/ckpt/format.h"

namespace lockstep::ckpt {

/// True for a folder with `.metadata` or with files `*.distcp`.
Result<bool> claims_dcp(const ReadInput& input);

/// The saved dict as a tree; tensors of several ranks are put together when
/// their bytes are asked for. Only files of the folder are opened.
/// Errors: as `read_dcp_metadata`; kCorrupt (E_DCP_COVERAGE, E_BOUNDS,
/// E_OVERLAP, E_NAME, E_STORAGE_SHORT), kNotFound for a missing file, those of
/// the items.
Result<Checkpoint> read_dcp(const ReadInput& input);

} // namespace lockstep::ckpt
