// SPDX-License-Identifier: BSD-3-Clause
//
// The disk of a dry run: what is written goes nowhere, so that a command
// refuses what it would refuse without --dry-run.
//   DryRunFs nowhere;
//   writer.write("new.pt", root, options, nowhere); // all errors but the
//   disk's
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::cli {

/// Reads are those of the real file system. What may not be made there is
/// refused, and what is written here is no longer free. Files that are made
/// cannot be opened afterwards, and folders are empty. Threads: as FileSystem.
class DryRunFs final : public FileSystem {
 public:
  Result<FileInfo> stat(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> open_read(
      const std::string& path) override;
  Result<std::shared_ptr<FileMapping>> map(const std::string& path) override;
  Result<bool> is_locked(const std::string& path) override;
  Status check_writable(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<std::string> resolve(const std::string& path) override;
  Result<std::uint64_t> free_space(const std::string& path) override;

  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path,
      std::uint32_t mode) override;
  Result<std::unique_ptr<WritableFile>> append(
      const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> open_update(
      const std::string& path) override;
  Result<std::unique_ptr<PathLock>> lock_directory(
      const std::string& path) override;
  Status truncate(const std::string& path, std::uint64_t size) override;
  Status chmod(const std::string& path, std::uint32_t mode) override;
  Status copy_metadata(const std::string& from, const std::string& to) override;
  Status symlink(const std::string& target, const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status rename_new(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status create_directories(const std::string& path) override;

 private:
  [[nodiscard]] bool is_made(const std::string& path) const;

  /// Units: bytes.
  std::atomic<std::uint64_t> written_ = 0;
  mutable std::mutex mutex_;
  /// Folders, and files by their last names.
  std::set<std::string> made_;
};

} // namespace lockstep::cli
