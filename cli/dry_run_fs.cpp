// SPDX-License-Identifier: BSD-3-Clause
#include "cli/dry_run_fs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "lockstep/base/internal/errno_error.h"

namespace lockstep::cli {
namespace {

// Counts what it would hold.
class NoFile final : public WritableFile {
 public:
  explicit NoFile(std::atomic<std::uint64_t>& written) : written_(written) {}

  Status write(ByteSpan bytes) override {
    written_ += bytes.size();
    return {};
  }
  Status write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {
    return {};
  }
  Status copy_from(
      ReadableFile& /*source*/,
      std::uint64_t /*offset*/,
      std::uint64_t length) override {
    written_ += length;
    return {};
  }
  Status sync() override {
    return {};
  }
  Status close() override {
    return {};
  }

 private:
  std::atomic<std::uint64_t>& written_;
};

// `folder`, or the first one above it that is there.
std::filesystem::path nearest_folder(std::filesystem::path folder) {
  std::error_code failed;
  while (!std::filesystem::exists(folder, failed) &&
         folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

// Whether this user may make `path`; `op`: the operation that errors name.
Status may_create(std::string_view op, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (fs::is_symlink(path, failed) && !fs::exists(path, failed)) {
    return errno_error(op, path, EEXIST);
  }
  const fs::path folder =
      nearest_folder(fs::absolute(path, failed).parent_path());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return errno_error(op, path, errno);
  }
  return {};
}

} // namespace

bool DryRunFs::is_made(const std::string& path) const {
  const std::scoped_lock lock(mutex_);
  return made_.contains(path);
}

Result<FileInfo> DryRunFs::stat(const std::string& path) {
  auto info = real_fs().stat(path);
  return !info && is_made(path) ? FileInfo() : std::move(info);
}

Result<std::unique_ptr<ReadableFile>> DryRunFs::open_read(
    const std::string& path) {
  return real_fs().open_read(path);
}

Result<std::shared_ptr<FileMapping>> DryRunFs::map(const std::string& path) {
  return real_fs().map(path);
}

Result<bool> DryRunFs::is_locked(const std::string& path) {
  return real_fs().is_locked(path);
}

Status DryRunFs::check_writable(const std::string& path) {
  return real_fs().check_writable(path);
}

Result<std::vector<std::string>> DryRunFs::list(const std::string& path) {
  auto names = real_fs().list(path);
  const bool is_new = !names && names.error().code == ErrorCode::kNotFound;
  return is_new && is_made(path) ? std::vector<std::string>()
                                 : std::move(names);
}

Result<std::string> DryRunFs::resolve(const std::string& path) {
  return real_fs().resolve(path);
}

Result<std::uint64_t> DryRunFs::free_space(const std::string& path) {
  std::error_code failed;
  const auto folder = nearest_folder(std::filesystem::absolute(path, failed));
  LOCKSTEP_ASSIGN(
      const std::uint64_t free,
      real_fs().free_space(folder.string()));
  return free - std::min(free, written_.load());
}

Result<std::unique_ptr<WritableFile>> DryRunFs::create(
    const std::string& path,
    std::uint32_t /*mode*/) {
  LOCKSTEP_TRY(may_create("fs.open", path));
  return std::unique_ptr<WritableFile>(std::make_unique<NoFile>(written_));
}

Result<std::unique_ptr<WritableFile>> DryRunFs::append(
    const std::string& path) {
  return create(path, 0);
}

Result<std::unique_ptr<WritableFile>> DryRunFs::open_update(
    const std::string& path) {
  return create(path, 0);
}

Result<std::unique_ptr<PathLock>> DryRunFs::lock_directory(
    const std::string& /*path*/) {
  return std::make_unique<PathLock>();
}

Status DryRunFs::truncate(const std::string& /*path*/, std::uint64_t /*size*/) {
  return {};
}

Status DryRunFs::chmod(const std::string& /*path*/, std::uint32_t /*mode*/) {
  return {};
}

Status DryRunFs::copy_metadata(
    const std::string& /*from*/,
    const std::string& /*to*/) {
  return {};
}

Status DryRunFs::symlink(
    const std::string& /*target*/,
    const std::string& /*path*/) {
  return {};
}

Status DryRunFs::rename(const std::string& /*from*/, const std::string& to) {
  const std::scoped_lock lock(mutex_);
  made_.insert(to);
  return {};
}

Status DryRunFs::rename_new(const std::string& from, const std::string& to) {
  return rename(from, to);
}

Status DryRunFs::remove(const std::string& /*path*/) {
  return {};
}

Status DryRunFs::sync_directory(const std::string& /*path*/) {
  return {};
}

Status DryRunFs::create_directories(const std::string& path) {
  LOCKSTEP_TRY(may_create("fs.create_directories", path));
  const std::scoped_lock lock(mutex_);
  made_.insert(path);
  return {};
}

} // namespace lockstep::cli
