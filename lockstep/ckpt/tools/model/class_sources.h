// SPDX-License-Identifier: BSD-3-Clause
//
// The Python sources that travel in a file: those of classes in legacy and tar
// checkpoints, `code/*` of TorchScript archives. They are text: nothing parses
// or runs them.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/ckpt/load.h"

namespace lockstep::ckpt {

/// Sources of `file`, which was loaded from `source` (null for a folder). A
/// record of an archive is named as in it, "code/__torch__/net.py".
/// Errors: as `load` for a record that is damaged.
Result<std::vector<ClassSource>> class_sources(
    const Checkpoint& file,
    const std::shared_ptr<ByteSource>& source);

} // namespace lockstep::ckpt
