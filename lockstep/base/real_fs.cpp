// SPDX-License-Identifier: BSD-3-Clause
//
// The file system of a POSIX machine.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/internal/real_files.h"
#include "lockstep/base/internal/rename_new.h"

namespace lockstep {
namespace {

using std::string_view_literals::operator""sv;

// Units: bytes of all names or one value; the kernel's limit.
constexpr std::size_t kMaxAttributeBytes = 65536;

using internal::checked;
using internal::open_path;
using internal::open_regular;
using internal::retry;

class RealMapping final : public FileMapping {
 public:
  RealMapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  RealMapping(const RealMapping&) = delete;
  RealMapping& operator=(const RealMapping&) = delete;
  ~RealMapping() override {
    if (size_ > 0) {
      ::munmap(data_, size_);
    }
  }
  [[nodiscard]] ByteSpan bytes() const override {
    return {data_, size_};
  }

 private:
  std::byte* data_;
  std::size_t size_;
};

// Names end with a zero each.
std::vector<char> attribute_names(const std::string& path) {
  std::vector<char> names(kMaxAttributeBytes);
  const ssize_t size = ::listxattr(path.c_str(), names.data(), names.size());
  names.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return names;
}

// What this user may not set, and what `to`'s file system does not know, is
// passed over; without an access list the mode has to do.
void copy_attributes(const std::string& from, const std::string& to) {
  // Signatures of the old bytes.
  constexpr std::array kOfBytes{"security.ima"sv, "security.evm"sv};
  const std::vector<char> names = attribute_names(from);
  std::vector<char> value(names.empty() ? 0 : kMaxAttributeBytes);
  const std::string_view rest(names.data(), names.size());
  for (std::size_t at = 0; at < rest.size(); at = rest.find('\0', at) + 1) {
    const char* const name = rest.data() + at;
    const ssize_t size =
        ::getxattr(from.c_str(), name, value.data(), value.size());
    if (size >= 0 && std::ranges::find(kOfBytes, name) == kOfBytes.end()) {
      static_cast<void>(::setxattr(
          to.c_str(),
          name,
          value.data(),
          static_cast<std::size_t>(size),
          0));
    }
  }
}

// Nobody else may hold any part of it. The lock is that of one opening of the
// file, not of the process, and can be asked for without being taken.
struct ::flock whole_file() {
  struct ::flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Whether `path` still names the open file: who held it before may have put
// another one in its place.
Result<bool> is_named(const Descriptor& file, const std::string& path) {
  struct ::stat open = {};
  struct ::stat named = {};
  LOCKSTEP_TRY(checked(::fstat(file.get(), &open), "fs.stat", path));
  const int result = ::stat(path.c_str(), &named);
  if (result == -1 && (errno == ENOENT || errno == ENOTDIR)) {
    return false;
  }
  LOCKSTEP_TRY(checked(result, "fs.stat", path));
  return open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// What `result` of a call that locks says of `what` at `path`: nothing if it is
// held; an error (not as the result's) if its file system knows no locks.
// Errors: E_LOCKED, and all others of the call.
Result<std::optional<Error>> missing_lock(
    int result,
    std::string_view what,
    const Descriptor& file,
    const std::string& path) {
  const int number = result == -1 ? errno : 0;
  if (number == EWOULDBLOCK) {
    return locked_error(what, path);
  }
  std::optional<Error> missing;
  if (number != 0) {
    missing = lock_errno_error(path, number);
    if (missing->detail != "E_NO_LOCKS") {
      return *std::move(missing);
    }
  }
  LOCKSTEP_ASSIGN(const bool is_same, is_named(file, path));
  return is_same ? Result<std::optional<Error>>(std::move(missing))
                 : locked_error(what, path);
}

class DirectoryLock final : public PathLock {
 public:
  DirectoryLock(Descriptor directory, std::optional<Error> missing)
      : directory_(std::move(directory)), missing_(std::move(missing)) {}
  [[nodiscard]] const Error* missing_lock() const override {
    return missing_ ? &*missing_ : nullptr;
  }

 private:
  Descriptor directory_; // the lock goes with it
  std::optional<Error> missing_;
};

class RealFs final : public FileSystem {
 public:
  Result<FileInfo> stat(const std::string& path) override {
    struct ::stat status = {};
    LOCKSTEP_TRY(checked(::stat(path.c_str(), &status), "fs.stat", path));
    return FileInfo{
        .kind = S_ISREG(status.st_mode)   ? FileInfo::Kind::kFile
                : S_ISDIR(status.st_mode) ? FileInfo::Kind::kDirectory
                                          : FileInfo::Kind::kOther,
        .size = static_cast<std::uint64_t>(status.st_size),
        .mode = status.st_mode & 07777U,
        .modified = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} +
                    status.st_mtim.tv_nsec};
  }

  Result<std::unique_ptr<ReadableFile>> open_read(
      const std::string& path) override {
    LOCKSTEP_ASSIGN(auto file, open_regular(path));
    return internal::make_readable(std::move(file), path);
  }

  Result<std::shared_ptr<FileMapping>> map(const std::string& path) override {
    LOCKSTEP_ASSIGN(const auto file, open_regular(path));
    void* data = nullptr;
    if (file.size > 0) {
      // Private and writable: tensors may change their bytes, the file stays.
      // No reserve: a large checkpoint needs no swap until it is written to.
      data = ::mmap(
          nullptr,
          file.size,
          PROT_READ | PROT_WRITE,
          MAP_PRIVATE | MAP_NORESERVE,
          file.descriptor.get(),
          0);
      if (data == MAP_FAILED) {
        return errno_error("fs.map", path, errno);
      }
    }
    return std::shared_ptr<FileMapping>(std::make_shared<RealMapping>(
        static_cast<std::byte*>(data),
        file.size));
  }

  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path,
      std::uint32_t mode) override {
    return open_write(path, O_EXCL, mode);
  }

  Result<std::unique_ptr<WritableFile>> append(
      const std::string& path) override {
    return open_write(path, O_APPEND, 0666);
  }

  Result<std::unique_ptr<WritableFile>> open_update(
      const std::string& path) override {
    LOCKSTEP_TRY(open_regular(path)); // refuses what is no regular file
    LOCKSTEP_ASSIGN(auto descriptor, open_path(path, O_RDWR | O_NONBLOCK));
    struct ::flock lock = whole_file();
    const int result =
        retry([&] { return ::fcntl(descriptor.get(), F_OFD_SETLK, &lock); });
    LOCKSTEP_ASSIGN(
        auto missing,
        missing_lock(result, "file", descriptor, path));
    return internal::make_writable(
        std::move(descriptor),
        path,
        std::move(missing));
  }

  Result<std::unique_ptr<PathLock>> lock_directory(
      const std::string& path) override {
    LOCKSTEP_ASSIGN(auto descriptor, open_path(path, O_RDONLY | O_DIRECTORY));
    const int result =
        retry([&] { return ::flock(descriptor.get(), LOCK_EX | LOCK_NB); });
    LOCKSTEP_ASSIGN(
        auto missing,
        missing_lock(result, "folder", descriptor, path));
    return std::unique_ptr<PathLock>(std::make_unique<DirectoryLock>(
        std::move(descriptor),
        std::move(missing)));
  }

  Result<bool> is_locked(const std::string& path) override {
    LOCKSTEP_ASSIGN(const auto file, open_regular(path));
    struct ::flock lock = whole_file();
    const int result = retry(
        [&] { return ::fcntl(file.descriptor.get(), F_OFD_GETLK, &lock); });
    return result == -1 ? Result<bool>(lock_errno_error(path, errno))
                        : lock.l_type != F_UNLCK;
  }

  Status check_writable(const std::string& path) override {
    LOCKSTEP_TRY(open_path(path, O_WRONLY | O_NONBLOCK));
    return {};
  }

  Status truncate(const std::string& path, std::uint64_t size) override {
    const int result = retry(
        [&] { return ::truncate(path.c_str(), static_cast<off_t>(size)); });
    return checked(result, "fs.truncate", path);
  }

  Status chmod(const std::string& path, std::uint32_t mode) override {
    return checked(::chmod(path.c_str(), mode), "fs.chmod", path);
  }

  Status copy_metadata(const std::string& from, const std::string& to)
      override {
    struct ::stat old = {};
    struct ::stat fresh = {};
    LOCKSTEP_TRY(checked(::stat(from.c_str(), &old), "fs.stat", from));
    LOCKSTEP_TRY(checked(::stat(to.c_str(), &fresh), "fs.stat", to));
    constexpr auto kSame = static_cast<uid_t>(-1);
    if (old.st_uid != fresh.st_uid || old.st_gid != fresh.st_gid) {
      // Only the superuser gives files away; a group of one's own is allowed.
      static_cast<void>(
          ::chown(to.c_str(), old.st_uid, old.st_gid) == 0 ||
          ::chown(to.c_str(), kSame, old.st_gid) == 0);
    }
    // After the owner, who changes it loses the set-id bits.
    LOCKSTEP_TRY(chmod(to, old.st_mode & 07777U));
    copy_attributes(from, to);
    return {};
  }

  Status symlink(const std::string& target, const std::string& path) override {
    return checked(::symlink(target.c_str(), path.c_str()), "fs.symlink", path);
  }

  Status rename(const std::string& from, const std::string& to) override {
    return checked(std::rename(from.c_str(), to.c_str()), "fs.rename", to);
  }

  Status rename_new(const std::string& from, const std::string& to) override {
    return lockstep::rename_new(from, to);
  }

  Status remove(const std::string& path) override {
    return checked(std::remove(path.c_str()), "fs.remove", path);
  }

  Status sync_directory(const std::string& path) override {
    LOCKSTEP_ASSIGN(
        const auto descriptor,
        open_path(path, O_RDONLY | O_DIRECTORY));
    const int result = ::fsync(descriptor.get());
    // Some network file systems cannot sync a directory and say so.
    if (result == -1 && (errno == EINVAL || errno == ENOTSUP)) {
      return {};
    }
    return checked(result, "fs.sync_directory", path);
  }

  Status create_directories(const std::string& path) override {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    return of(code, "fs.create_directories", path);
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    std::vector<std::string> names;
    std::error_code code;
    std::filesystem::directory_iterator entry(path, code);
    for (; !code && entry != std::filesystem::directory_iterator();
         entry.increment(code)) {
      names.push_back(entry->path().filename().string());
    }
    LOCKSTEP_TRY(of(code, "fs.list", path));
    std::ranges::sort(names);
    return names;
  }

  Result<std::string> resolve(const std::string& path) override {
    // Link by link, so that a link to a file that is still missing works too.
    constexpr int kMaxLinks = 40;
    std::filesystem::path target = path;
    std::error_code code;
    for (int i = 0; i < kMaxLinks; ++i) {
      if (!std::filesystem::is_symlink(target, code)) {
        return target.string();
      }
      const auto next = std::filesystem::read_symlink(target, code);
      LOCKSTEP_TRY(of(code, "fs.resolve", path));
      target = target.parent_path() / next;
    }
    return errno_error("fs.resolve", path, ELOOP);
  }

  Result<std::uint64_t> free_space(const std::string& path) override {
    struct ::statvfs status = {};
    const int result = retry([&] { return ::statvfs(path.c_str(), &status); });
    LOCKSTEP_TRY(checked(result, "fs.free_space", path));
    if (status.f_blocks == 0) {
      // A file system that keeps no count has no limit that we could check.
      return std::numeric_limits<std::uint64_t>::max();
    }
    return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
  }

 private:
  static Status of(
      const std::error_code& code,
      std::string_view op,
      const std::string& path) {
    return code ? Status(errno_error(op, path, code.value())) : Status();
  }

  static Result<std::unique_ptr<WritableFile>>
  open_write(const std::string& path, int flags, std::uint32_t mode) {
    LOCKSTEP_ASSIGN(
        auto descriptor,
        open_path(path, O_WRONLY | O_CREAT | O_NONBLOCK | flags, mode));
    // O_NONBLOCK was for the opening only.
    const int status = ::fcntl(descriptor.get(), F_GETFL);
    LOCKSTEP_TRY(checked(status, "fs.open", path));
    LOCKSTEP_TRY(checked(
        ::fcntl(descriptor.get(), F_SETFL, status & ~O_NONBLOCK),
        "fs.open",
        path));
    return internal::make_writable(std::move(descriptor), path);
  }
};

} // namespace

FileSystem& real_fs() {
  static RealFs fs;
  return fs;
}

} // namespace lockstep
