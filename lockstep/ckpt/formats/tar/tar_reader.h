// SPDX-License-Identifier: BSD-3-Clause
//
// Reader of the tar archives that torch.save wrote up to 0.1.9 (early 2017),
// and of a folder that somebody unpacked one into. Not of `.pth.tar` files in
// general: that is only a name. For `load`.
#pragma once

#include "lockstep/ckpt/core/format.h"

namespace lockstep::ckpt {

/// True for every tar archive.
Result<bool> claims_tar(const ReadInput& input);

/// Errors: as `load`, with the member as record; kCorrupt (E_TAR); kUnsupported
/// (E_WRONG_FORMAT) for an archive that is not a checkpoint.
Result<Checkpoint> read_tar(const ReadInput& input);

/// True for a folder with the files `pickle`, `tensors` and `storages`.
Result<bool> claims_tar_folder(const ReadInput& input);
Result<Checkpoint> read_tar_folder(const ReadInput& input);

} // namespace lockstep::ckpt
