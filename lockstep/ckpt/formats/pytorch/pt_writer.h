// SPDX-License-Identifier: BSD-3-Clause
//
// Writes PyTorch's zip container: a row of format_table.cpp.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// As `save` with the format "pt".
Status write_pt(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
