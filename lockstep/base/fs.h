// SPDX-License-Identifier: BSD-3-Clause
//
// All file access goes through `FileSystem`, so that tests can replace the
// disk: by one in memory, or by one that fails or forgets on purpose.
// `real_fs()` is this file's default.
// Files that must survive a crash are written by atomic_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"

#pragma GCC visibility push(default)
namespace lockstep {

using ByteSpan = std::span<const std::byte>;

/// Bytes of `text`, without a copy.
inline ByteSpan as_byte_span(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The characters of `bytes`, without a copy.
inline std::string_view as_text(ByteSpan bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What `stat` tells of a path.
struct FileInfo {
  enum class Kind { kFile, kDirectory, kOther };
  Kind kind = Kind::kFile;
  /// Units: bytes.
  std::uint64_t size = 0;
  /// Permission bits, 0644 for example.
  std::uint32_t mode = 0;
  /// When the contents were last written, as the file system says. Units:
  /// nanoseconds since 1970.
  std::int64_t modified = 0;

  friend bool operator==(const FileInfo&, const FileInfo&) = default;
};

/// Units: bytes that a disk writes whole or not at all.
inline constexpr std::uint64_t kSectorBytes = 512;

/// An open file to read from. Threads: `read_at` may run concurrently.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// Units: bytes, as of opening.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`. Errors: kIo; kCorrupt (E_TRUNCATED) if the
  /// file ends before `out` is full.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> out) = 0;
};

/// An open file to write to, at its end or at an offset.
/// Closing without `sync` may lose data in a crash.
/// Threads: one at a time, but a `sync` may run beside the other calls (not
/// `close`); it covers what was written before it began.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// Appends all of `bytes`. Errors: kIo.
  virtual Status write(ByteSpan bytes) = 0;
  /// Writes `bytes` at `offset`, behind the end if need be (zeros fill the
  /// gap). Bytes within one sector (`kSectorBytes`) are written whole or not at
  /// all, also if the process is killed or the power goes. Errors: kIo;
  /// kUnsupported for a file that was not opened by `open_update`.
  virtual Status write_at(std::uint64_t offset, ByteSpan bytes) = 0;
  /// Appends `length` bytes of `source` from `offset`. The real file system
  /// shares the blocks or copies inside the kernel where it can; otherwise
  /// the bytes are read and written. Errors: as `read_at` and `write`.
  virtual Status
  copy_from(ReadableFile& source, std::uint64_t offset, std::uint64_t length);
  /// Takes room on the disk for a file of `bytes`, where the file system can;
  /// its size stays. Errors: kIo (E_NO_SPACE).
  virtual Status reserve(std::uint64_t /*bytes*/) {
    return {};
  }
  /// Tells that `sync` will follow. The real file system then starts to write
  /// to the disk while later bytes are still being appended, so that `sync` has
  /// little left to wait for. An error of that is one of `write`.
  virtual void expect_sync() {}
  /// Makes the data durable. A failed call must not be repeated: the kernel
  /// may have dropped the pages.
  virtual Status sync() = 0;
  /// Errors: kIo (a delayed write error). The file is closed in any case.
  virtual Status close() = 0;
  /// Why `open_update` could not lock the file: its file system knows no locks
  /// (E_NO_LOCKS). Null if it is locked, or was not to be.
  [[nodiscard]] virtual const Error* missing_lock() const {
    return nullptr;
  }
};

/// Keeps others from changing a path until it is destroyed.
class PathLock {
 public:
  virtual ~PathLock() = default;
  /// Why nobody is kept from it, as `WritableFile::missing_lock`.
  [[nodiscard]] virtual const Error* missing_lock() const {
    return nullptr;
  }
};

/// Bytes of a whole file that stay valid while the object lives. The real file
/// system maps the file privately: writing to the pages never reaches the disk.
class FileMapping {
 public:
  virtual ~FileMapping() = default;
  [[nodiscard]] virtual ByteSpan bytes() const = 0;
};

/// Seam to the disk. Threads: safe to call from several threads.
/// Errors: kNotFound for a missing path, kUnsupported (E_NOT_REGULAR) for one
/// that is no file to read, kIo for the rest; `path` is set.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<FileInfo> stat(const std::string& path) = 0;
  /// Refuses what is not a regular file (E_NOT_REGULAR).
  virtual Result<std::unique_ptr<ReadableFile>> open_read(
      const std::string& path) = 0;
  /// Maps a regular file. Ownership: shared with whoever aliases the bytes.
  virtual Result<std::shared_ptr<FileMapping>> map(const std::string& path) = 0;
  /// Creates a file that must not exist (O_EXCL). `mode` before the umask.
  virtual Result<std::unique_ptr<WritableFile>> create(
      const std::string& path,
      std::uint32_t mode) = 0;
  /// Opens for appending, created if missing.
  virtual Result<std::unique_ptr<WritableFile>> append(
      const std::string& path) = 0;
  /// Opens an existing regular file for `write_at`. One process at a time can
  /// hold it (kIo, E_LOCKED). It is the one that `path` names once it is held:
  /// one that was replaced meanwhile is E_LOCKED, too. On a file system without
  /// locks the file is opened all the same, and its `missing_lock` says so.
  virtual Result<std::unique_ptr<WritableFile>> open_update(
      const std::string& path) = 0;
  /// Locks a directory, for programs that replace files in it: the files go,
  /// the directory stays. One holder at a time, also in this process; a
  /// directory that was replaced meanwhile is E_LOCKED (kIo), too. Leaves no
  /// file, unlike FolderLock, which says who holds a folder. On a file system
  /// that cannot lock directories nothing is locked, and `missing_lock` says
  /// so. Errors: as `open_update`.
  virtual Result<std::unique_ptr<PathLock>> lock_directory(
      const std::string& path) = 0;
  /// True while `open_update` holds the file, here or in another process. Takes
  /// no lock, so that it keeps nobody from taking one. Errors: as `open_read`;
  /// kIo (E_NO_LOCKS) if the file system knows no locks.
  virtual Result<bool> is_locked(const std::string& path) = 0;
  /// Errors: kIo (E_PERMISSION) for a file that this user may not write to.
  virtual Status check_writable(const std::string& path) = 0;
  /// Shortens a file to `size` bytes.
  virtual Status truncate(const std::string& path, std::uint64_t size) = 0;
  virtual Status chmod(const std::string& path, std::uint32_t mode) = 0;
  /// Gives `to` the owner, mode and extended attributes (the access list is
  /// one) of `from`, as far as this user may and the file system knows them.
  virtual Status copy_metadata(
      const std::string& from,
      const std::string& to) = 0;
  /// Makes `path` a symbolic link with the text `target`, which is a path from
  /// the folder of `path`, or an absolute one; it need not exist. All calls
  /// that take a path follow links, except the renames and `remove`, which act
  /// on the link. Errors: kIo (E_EXISTS) if anything is at `path`.
  virtual Status symlink(
      const std::string& target,
      const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// `rename` that replaces nothing, in one step: of two who race for a name,
  /// one gets it. Errors: kIo (E_EXISTS) if anything is at `to`.
  virtual Status rename_new(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  /// Makes created, renamed and removed names durable.
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Status create_directories(const std::string& path) = 0;
  /// Names in a directory, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  /// The real target of symbolic links; `path` itself if nothing is there.
  virtual Result<std::string> resolve(const std::string& path) = 0;
  /// Units: bytes free for this user on the file system that holds `path`.
  virtual Result<std::uint64_t> free_space(const std::string& path) = 0;
};

/// The file system of this machine.
FileSystem& real_fs();

/// Reads a whole file as text. Errors: as `open_read`.
Result<std::string> read_text(FileSystem& fs, const std::string& path);

/// "dir/name.ext" -> "dir"; "name" -> ".".
std::string parent_directory(const std::string& path);

/// "dir/name.ext" -> "name.ext".
std::string base_name(const std::string& path);

} // namespace lockstep
#pragma GCC visibility pop
