// SPDX-License-Identifier: BSD-3-Clause
//
// Says what a folder is that was given instead of a checkpoint: an unpacked
// archive, or a place that holds several files.
#pragma once

#include <string>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

/// `error` in better words if `path` is a folder whose content
/// tells what happened; `error` itself otherwise.
Error explain_folder(Error error, const std::string& path, FileSystem& fs);

} // namespace lockstep::ckpt
