// SPDX-License-Identifier: BSD-3-Clause
//
// Replaces a file so that a crash, a kill or a full disk at any moment leaves
// the old file or the new one, never a mixture: temporary file in the same
// folder, fsync, rename, fsync of the folder.
//   write_file_atomically(real_fs(), "args.yaml", text);
#pragma once

#include <functional>

#include "lockstep/base/fs.h"

namespace lockstep {

/// How `write_file_atomically` writes.
struct AtomicWriteOptions {
  /// Units: bytes the caller will write, if known; free space is checked first.
  std::uint64_t expected_bytes = 0;
  /// Off: faster, may lose the new file (not the old one) in a power cut.
  bool durable = true;
  /// Take the expected bytes from the disk before the first write: faster, and
  /// a full disk is noticed at once. Off where blocks may be shared.
  bool reserve = true;
  /// Off: refuse (kIo, E_EXISTS) if anything is at the path, now or at the
  /// moment when the new file gets its name.
  bool replace = true;
};

/// Writes `path` by calling `fill` on a temporary file beside it.
/// Symbolic links are followed; an existing file's owner, mode and extended
/// attributes are kept as far as permitted. A file that may not be written to
/// is not replaced (E_PERMISSION). Errors: kIo or what `fill` returned (or
/// threw); then the old file is untouched and the temporary file is removed. A
/// failed fsync is never retried. Only if the last step fails, the fsync of the
/// folder, is the new file in place already, and may be lost in a power cut.
Status write_file_atomically(
    FileSystem& fs,
    const std::string& path,
    const std::function<Status(WritableFile&)>& fill,
    const AtomicWriteOptions& options = {});

/// The same with all bytes at hand.
Status write_file_atomically(
    FileSystem& fs,
    const std::string& path,
    std::string_view bytes,
    const AtomicWriteOptions& options = {});

/// Makes `path` a symbolic link with the text `target` (see
/// `FileSystem::symlink`), whatever file or link was there.
/// Errors: kIo; then what was there is untouched, except if only the last step
/// fails, the fsync of the folder: then the new link is in place already, and
/// may be lost in a power cut.
Status replace_link(
    FileSystem& fs,
    const std::string& target,
    const std::string& path);

/// For a program, at its start: SIGHUP, SIGINT and SIGTERM also remove the
/// temporary files that are being written, and then end the program as ever.
/// SIGXFSZ ends nothing: the write beyond `ulimit -f` fails (E_NO_SPACE). A
/// signal that is ignored stays so.
void remove_temporaries_on_signals();

/// Whether a process of this machine goes on: one that has ended does not, also
/// while its parent has not asked how.
bool is_process_alive(std::int64_t pid);

/// True for the name of such a temporary file.
bool is_temporary_name(std::string_view name);

/// Removes temporary files and links that a killed process left in `directory`;
/// those of living processes stay. Returns the names removed. `is_alive`
/// decides about a process; by default `is_process_alive`.
Result<std::vector<std::string>> remove_stale_temporaries(
    FileSystem& fs,
    const std::string& directory,
    const std::function<bool(std::int64_t pid)>& is_alive = {});

} // namespace lockstep
