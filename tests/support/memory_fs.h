// SPDX-License-Identifier: BSD-3-Clause
//
// A file system in memory that knows what a disk would still have after a
// power cut: file data as of the last `sync`, names as of the last
// `sync_directory`. For tests; a symbolic link is a name, and so is its text.
//   MemoryFs fs;
//   write_file_atomically(fs, "run/model.pth", text);
//   MemoryFs later = fs.after_power_loss({});
#pragma once

#include "lockstep/base/fs.h"

namespace lockstep {

namespace internal {
struct MemoryDisk;
} // namespace internal

/// Which unsynced changes a power cut spares. A disk may keep any of them.
struct PowerLoss {
  enum class Data {
    /// Back to the last sync.
    kLost,
    /// Everything reached the disk.
    kKept,
    /// New bytes survive up to the last whole sector of 512 bytes.
    kTorn,
  };
  Data data = Data::kLost;
  /// On: names created, renamed or removed since the last sync survive.
  bool keep_names = false;

  friend bool operator==(const PowerLoss&, const PowerLoss&) = default;
};

/// Paths are compared after normalisation ("a/./b" is "a/b"); relative paths
/// start at a folder that always exists. Directories survive a power loss.
class MemoryFs final : public FileSystem {
 public:
  MemoryFs();
  MemoryFs(const MemoryFs&) = delete;
  MemoryFs& operator=(const MemoryFs&) = delete;
  MemoryFs(MemoryFs&& other) noexcept;
  MemoryFs& operator=(MemoryFs&& other) noexcept;
  ~MemoryFs() override;

  /// As a network disk whose server knows no locks (ENOLCK).
  static MemoryFs without_locks();

  /// What a restarted machine would find. Threads: no writer may run.
  [[nodiscard]] MemoryFs after_power_loss(const PowerLoss& loss) const;

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
  Status move(const std::string& from, const std::string& to, bool only_new);

  std::shared_ptr<internal::MemoryDisk> disk_;
};

} // namespace lockstep
