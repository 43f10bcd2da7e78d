// SPDX-License-Identifier: BSD-3-Clause
//
// Turns the system's error numbers into `Error` values: the class decides the
// exit code, the detail is what a program may test.
//   return errno_error("fs.open", path, errno);
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep {

/// The error for `error_number` (an `errno` value) at `path`: kNotFound for a
/// missing path, kIo for the rest. Detail: E_NO_SPACE, E_PERMISSION, E_EXISTS,
/// E_NOT_REGULAR or empty.
Error errno_error(
    std::string_view op,
    const std::string& path,
    int error_number);

/// E_LOCKED: `what` ("file", "folder") at `path` is held by somebody else.
Error locked_error(std::string_view what, const std::string& path);

/// The error of a call that locks `path` or asks for its lock: E_NO_LOCKS where
/// the file system knows no locks; else as `errno_error`.
Error lock_errno_error(const std::string& path, int error_number);

} // namespace lockstep
