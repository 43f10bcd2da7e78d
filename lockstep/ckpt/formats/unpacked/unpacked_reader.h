// SPDX-License-Identifier: BSD-3-Clause
//
// Reader of a folder that somebody unzipped a checkpoint into: `data.pkl`,
// `version` and the storages in `data/`. Some desktops unpack a download
// without being asked. For `load`.
#pragma once

#include "lockstep/ckpt/core/format.h"

namespace lockstep::ckpt {

/// True for a folder with a file `data.pkl`, or with one folder that has it.
Result<bool> claims_unpacked(const ReadInput& input);

/// There are no checksums left to compare. Errors: as `load`, with the file in
/// the folder as record.
Result<Checkpoint> read_unpacked(const ReadInput& input);

} // namespace lockstep::ckpt
