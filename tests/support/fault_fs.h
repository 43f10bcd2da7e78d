// SPDX-License-Identifier: BSD-3-Clause
//
// Fails on purpose: wraps another file system, counts its operations, and lets
// the chosen ones fail. For tests: run once to learn `operations()`, then once
// for each of them.
//   FaultFs faulty(memory, {.fail_at = 3, .error_number = EIO});
//   write_file_atomically(faulty, "a", text);   // 4th operation fails
#pragma once

#include <functional>
#include <limits>

#include "lockstep/base/fs.h"

namespace lockstep {

/// What goes wrong.
struct FaultPlan {
  static constexpr std::uint64_t kNever =
      std::numeric_limits<std::uint64_t>::max();

  /// Index (from 0) of the first operation that fails.
  std::uint64_t fail_at = kNever;
  /// Operations that fail from there on. `kNever`: all, and none of them has
  /// an effect, as if the process had been killed.
  std::uint64_t failures = 1;
  /// The `errno` value that is reported.
  int error_number = 5;
  /// Units: bytes of a failing write that reach the file all the same.
  std::uint64_t short_write_bytes = 0;
  /// Units: bytes that may be written before the disk is full.
  std::uint64_t byte_budget = kNever;
  /// Called with the name of each operation ("fs.sync") before it runs, on the
  /// thread that asks for it; may wait.
  std::function<void(std::string_view op)> before = {};
};

/// Every call counts as one operation, those on open files too.
/// A failed `sync` drops the dirty pages as Linux does: a second `sync` of the
/// file, also after it was opened again, reports success, and nothing has
/// reached the disk. Only bytes that are written once more do.
/// Ownership: the wrapped file system must outlive this one and its files.
class FaultFs final : public FileSystem {
 public:
  explicit FaultFs(FileSystem& inner, const FaultPlan& plan = {});

  /// Operations so far, failed ones included.
  [[nodiscard]] std::uint64_t operations() const;

  Result<FileInfo> stat(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> open_read(
      const std::string& path) override;
  Result<std::shared_ptr<FileMapping>> map(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path,
      std::uint32_t mode) override;
  Result<std::unique_ptr<WritableFile>> append(
      const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> open_update(
      const std::string& path) override;
  Result<std::unique_ptr<PathLock>> lock_directory(
      const std::string& path) override;
  Result<bool> is_locked(const std::string& path) override;
  Status check_writable(const std::string& path) override;
  Status truncate(const std::string& path, std::uint64_t size) override;
  Status chmod(const std::string& path, std::uint32_t mode) override;
  Status copy_metadata(const std::string& from, const std::string& to) override;
  Status symlink(const std::string& target, const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status rename_new(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status create_directories(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<std::string> resolve(const std::string& path) override;
  Result<std::uint64_t> free_space(const std::string& path) override;

 private:
  class Faults;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> faulty(
      std::unique_ptr<WritableFile> file,
      const std::string& path,
      std::uint64_t end) const;

  std::shared_ptr<Faults> faults_;
  FileSystem& inner_;
};

} // namespace lockstep
