// SPDX-License-Identifier: BSD-3-Clause
//
// What `MemoryFs` and its open files share: names, what they stand for, and
// which of it a power cut would leave. Whoever calls holds `mutex`.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"

namespace lockstep::internal {

/// A file, or a symbolic link.
struct MemoryNode {
  std::string data = {};
  /// As of the last sync; what was never synced is an empty file.
  std::string durable = {};
  std::uint32_t mode = 0644;
  /// Number of the disk's change that was the last one of `data`.
  std::int64_t modified = 0;
  /// The text of a symbolic link; empty for a file.
  std::string link = {};
  /// On while a file from `open_update` is open.
  bool is_locked = false;
};

/// The state of one `MemoryFs`.
struct MemoryDisk {
  using Names = std::map<std::string, std::shared_ptr<MemoryNode>>;

  /// "a/./b/" -> "a/b".
  static std::string normal(const std::string& path);

  /// `path` with all links in it replaced, in normal form. Errors: kIo for a
  /// loop.
  [[nodiscard]] Result<std::string> follow(
      std::string_view op,
      const std::string& path) const;
  /// The same, but a link that `path` itself names is not followed.
  [[nodiscard]] Result<std::string> name_of(
      std::string_view op,
      const std::string& path) const;
  /// The normal form of a path to a directory. Errors: kNotFound.
  [[nodiscard]] Result<std::string> find_directory(
      std::string_view op,
      const std::string& path) const;
  /// The file at `path`, links followed. Errors: kNotFound; kIo for a directory
  /// or a loop.
  [[nodiscard]] Result<std::shared_ptr<MemoryNode>> find(
      std::string_view op,
      const std::string& path) const;
  /// As `find` for a file to read: kUnsupported instead of kIo.
  [[nodiscard]] Result<std::shared_ptr<MemoryNode>> find_file(
      const std::string& path) const;
  /// The name itself, be it of a file or a link. Errors: as `find`.
  Result<Names::iterator> find_name(
      std::string_view op,
      const std::string& path);
  /// A new file where the links of `path` lead.
  Result<std::shared_ptr<MemoryNode>> make(
      const std::string& path,
      std::uint32_t mode);

  /// Notes that `node` has other data now.
  void touch(MemoryNode& node) {
    node.modified = ++changes;
  }

  mutable std::mutex mutex = {};
  std::int64_t changes = 0;
  Names names = {};
  Names durable_names = {};
  std::set<std::string> directories{".", "/"};
  /// Directories that are held.
  std::set<std::string> locked = {};
  /// Off: a file system that knows no locks.
  bool has_locks = true;
};

/// `data` as of now. `path` is for errors.
std::unique_ptr<ReadableFile> make_memory_readable(
    std::string data,
    std::string path);
std::shared_ptr<FileMapping> make_memory_mapping(std::string data);

/// Writes to `node`.
std::unique_ptr<WritableFile> make_memory_writable(
    std::shared_ptr<MemoryDisk> disk,
    std::shared_ptr<MemoryNode> node);
/// The same, and takes the lock until it is closed. Errors: kIo (E_LOCKED).
Result<std::unique_ptr<WritableFile>> make_memory_update(
    std::shared_ptr<MemoryDisk> disk,
    std::shared_ptr<MemoryNode> node,
    const std::string& path);
/// Holds the directory `folder`. Errors: kIo (E_LOCKED), with `path`.
Result<std::unique_ptr<PathLock>> make_memory_lock(
    std::shared_ptr<MemoryDisk> disk,
    std::string folder,
    const std::string& path);

} // namespace lockstep::internal
