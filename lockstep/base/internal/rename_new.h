// SPDX-License-Identifier: BSD-3-Clause
//
// `FileSystem::rename_new` of the real file system: one step where the kernel
// and the file system have one, else the nearest there is.
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep {

/// System calls that some file systems do not have. As in the kernel: 0, or -1
/// and `errno`.
struct RenameCalls {
  /// `renameat2` with RENAME_NOREPLACE.
  int (*rename_noreplace)(const char* from, const char* to) = nullptr;
  int (*link)(const char* from, const char* to) = nullptr;
};

/// Those of this machine.
RenameCalls rename_calls();

/// Errors: kIo (E_EXISTS) if anything is at `to`.
Status rename_new(
    const std::string& from,
    const std::string& to,
    const RenameCalls& calls = rename_calls());

} // namespace lockstep
