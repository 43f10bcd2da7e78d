// SPDX-License-Identifier: BSD-3-Clause
//
// The errors of reading a file.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::ckpt {

/// What is wrong with a file; the detail names it for programs ("E_OPCODE").
Error read_error(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::string hint = {});

/// The same of bytes that are wrong: kCorrupt; with the archive's record, if
/// there is one.
Error corrupt_file(
    std::string_view detail,
    std::string message,
    std::string record = {});

} // namespace lockstep::ckpt
