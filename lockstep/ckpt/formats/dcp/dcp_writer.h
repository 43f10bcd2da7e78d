// SPDX-License-Identifier: BSD-3-Clause
//
// Writes a folder that Python's `dcp.load` reads: a row of format_table.cpp.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Makes the folder `path` with one data file and `.metadata`, which comes last
/// and replaces an old one in one step: a crash leaves the old checkpoint or
/// the new one. Data files of the old one are removed after that.
/// Errors: as `save`; those of `dcp_leaves`.
Status write_dcp(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
