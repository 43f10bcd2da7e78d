// SPDX-License-Identifier: BSD-3-Clause
//
// Writes an edited checkpoint the cheapest safe way: behind the old directory
// of the same file, or to a new file with tensor bytes copied by the kernel.
//   auto file = ckpt::load("m.pt", {.use_mmap = false});
//   auto edited = strip_prefix(file->root, {});
//   rewrite(*file, edited->root, "m.pt", {.input = "m.pt"});
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

/// How `rewrite` writes.
struct RewriteOptions {
  /// The file that `file` was loaded from; empty if it has none.
  std::string input = {};
  /// If the output is the input: append (append_edit.h) where the format and
  /// the tree allow it. Off: always a new file in its place.
  bool may_append = true;
  /// Off: refuse an output that exists and is not the input (SaveOptions).
  bool replace = true;
};

enum class RewriteMethod { kAppended, kWritten };

struct RewriteReport {
  RewriteMethod method = RewriteMethod::kWritten;
  /// Units: bytes appended, or of the new file.
  std::uint64_t bytes = 0;
};

/// Writes `root`, a tree made of `file`, to `output` in the format of `file`.
/// Output = input is safe: a crash at any moment leaves the old file or the
/// new one. Storages of `file` keep their checksums (damage in them stays
/// visible, and is not looked for here).
/// Errors: as `save`; kUnsupported (E_NO_WRITER) for a format that is only
/// read.
Result<RewriteReport> rewrite(
    const Checkpoint& file,
    const Value& root,
    const std::string& output,
    const RewriteOptions& options = {},
    FileSystem& fs = real_fs());

/// True if both paths lead to one existing file.
bool is_same_file(
    const std::string& a,
    const std::string& b,
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
