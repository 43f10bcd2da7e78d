// SPDX-License-Identifier: BSD-3-Clause
//
// Opens the file of a program; errors are thrown with its path.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"

namespace lockstep::program {

/// Throws an error of `program.load`.
[[noreturn]] void refuse_program(
    const std::string& path,
    ErrorCode code,
    std::string message,
    std::string hint = {},
    std::string_view detail = "E_PROGRAM");

/// Errors: throws kNotFound, kIo, kCorrupt, kUnsupported, kUnsafe.
ckpt::ExportedFile open_program(const std::string& path, bool use_mmap);

/// The program `wanted` of a file, or its only one. Ownership: `file`'s.
/// Errors: throws kNotFound with the names.
ckpt::ExportedModel& choose_model(
    const std::string& path,
    ckpt::ExportedFile& file,
    const std::string& wanted);

} // namespace lockstep::program
