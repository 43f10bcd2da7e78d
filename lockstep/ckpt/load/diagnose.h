// SPDX-License-Identifier: BSD-3-Clause
//
// Says what a file is that is not a checkpoint we read: a web page, a Git LFS
// pointer, an archive, another framework's format.
#pragma once

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

/// Units: bytes of the file's start that `diagnose` looks at.
inline constexpr std::uint64_t kDiagnoseBytes = 512;

/// True if `head` starts compressed data or an archive, in which anything may
/// be, that nothing here unpacks.
bool is_packed(ByteSpan head);

/// The error for a file that starts with `head` and is not a zip archive.
/// Errors: kUnsupported (E_WRONG_FORMAT, E_LFS_POINTER), kCorrupt (E_EMPTY,
/// E_WRONG_FORMAT).
Error diagnose(ByteSpan head, std::uint64_t file_bytes);

} // namespace lockstep::ckpt
