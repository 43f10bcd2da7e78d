// SPDX-License-Identifier: BSD-3-Clause
//
// `LoadOptions::refuse_unknown_globals`, for every format with a pickle in it.
#pragma once

#include <string>

#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

/// Judges the names in `file` if `options` ask for it. `record` is where the
/// pickle is, empty if the file is the pickle.
/// Errors: kUnsafe (E_UNSAFE_GLOBAL).
Status check_allow_list(
    const Checkpoint& file,
    const LoadOptions& options,
    const std::string& record = {});

} // namespace lockstep::ckpt
