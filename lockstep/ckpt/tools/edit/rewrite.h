// SPDX-License-Identifier: BSD-3-Clause
//
// Writes an edited checkpoint in the format it had; the kernel copies the bytes
// of tensors.
//   auto file = ckpt::load("m.pt", {.use_mmap = false});
//   auto edited = strip_prefix(file->root, {});
//   rewrite(*file, edited->root, "m.pt");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/load.h"

namespace lockstep::ckpt {

/// The name of the writer for the format of `file`: "pt" for "zip". `input` is
/// its path, for the message.
/// Errors: kUnsupported (E_NO_WRITER) for a format that is only read.
Result<std::string> writer_of(const Checkpoint& file, const std::string& input);

/// Saves `root`, a tree made of `file`, in the format of `file`, whatever the
/// options say. `output` may be the file itself: a new one takes its place.
/// Storages of `file` keep their checksums (`SaveOptions::reuse_checksums`).
/// Errors: as `save`; kUnsupported (E_NO_WRITER) for a format that is only
/// read.
Status rewrite(
    const Checkpoint& file,
    const Value& root,
    const std::string& output,
    SaveOptions options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
