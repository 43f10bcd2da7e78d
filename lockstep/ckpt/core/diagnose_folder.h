// SPDX-License-Identifier: BSD-3-Clause
//
// Says what to do when a folder was given that no reader claims: it may hold
// checkpoints.
#pragma once

#include <string>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

/// `error` with the name of a checkpoint in `path` if that is a folder and has
/// one; `error` itself otherwise.
Error explain_folder(Error error, const std::string& path, FileSystem& fs);

} // namespace lockstep::ckpt
