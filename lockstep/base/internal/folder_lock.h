// SPDX-License-Identifier: BSD-3-Clause
//
// One process per folder: a second run that would write into the same folder is
// refused and told who has it. The lock is the kernel's, on the file `.lock` in
// the folder: it goes with its process, however that ends.
//   auto lock = FolderLock::take(real_fs(), "run");
//   if (!lock) { return lock.error(); }   // held until `lock` is destroyed
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/fs.h"

namespace lockstep {

/// Whether a process holds a folder now.
enum class FolderHeld {
  kNo,
  kYes,
  /// This user may not look, or the file system knows no locks.
  kUnknown,
};

/// Who has a folder, or had it.
struct FolderOwner {
  FolderHeld held = FolderHeld::kNo;
  /// What it wrote: "pid 123 on box since 2026-11-23 10:00:00 UTC". Without a
  /// holder: of one that died without freeing the folder; else empty. If that
  /// is unknown, of one of the two.
  std::string text = {};
};

/// Holds a folder until it is destroyed.
/// Ownership: the file system must outlive it. A process made by fork holds the
/// lock too until it ends or calls exec.
/// Threads: an object belongs to one thread at a time.
class FolderLock {
 public:
  /// Takes `folder`, which must exist. Who took it and when is written into its
  /// file `.lock`, which is created if missing. On a file system without locks
  /// nobody is kept out, and `warning` says so.
  /// Errors: kIo (E_LOCKED) if it is taken, also by this process; the message
  /// names folder, process, machine, time and age. Else as `open_update`.
  static Result<FolderLock> take(FileSystem& fs, const std::string& folder);

  /// Looks, changes nothing, and keeps nobody from taking the folder. One
  /// without `.lock` has no owner.
  static FolderOwner owner_of(FileSystem& fs, const std::string& folder);

  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// Empties `.lock` and frees the folder. The file stays: somebody else may
  /// have opened it already.
  ~FolderLock();

  /// What an owner had written that died without freeing the folder:
  /// "pid 123 on box since 2026-11-23 10:00:00 UTC"; empty if there was none,
  /// or if nobody can know. Made safe for a terminal.
  [[nodiscard]] std::string stale_owner() const;

  /// For who works in the folder: what a user should look at. That its owner
  /// died, or that it could not be locked, with who may be in it as well; empty
  /// if all is well.
  [[nodiscard]] std::string warning() const;

 private:
  FolderLock(
      FileSystem& fs,
      std::string path,
      std::unique_ptr<WritableFile> file,
      std::string last_owner);

  FileSystem* fs_;
  std::string path_;
  // Null in an object that has been moved from.
  std::unique_ptr<WritableFile> file_;
  // What stood in the file.
  std::string last_owner_;
};

} // namespace lockstep
