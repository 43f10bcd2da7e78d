// SPDX-License-Identifier: BSD-3-Clause
//
// The file system of a POSIX machine. Opening never blocks: a FIFO is opened
// with O_NONBLOCK, looked at, and refused.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "lockstep/base/errno_error.h"
#include "lockstep/base/fs.h"

namespace lockstep {
namespace {

// Runs a system call again while a signal interrupts it.
template <class Call>
auto retry(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) {
    result = call();
  }
  return result;
}

Status checked(int result, std::string_view op, const std::string& path) {
  if (result != -1) {
    return {};
  }
  return errno_error(op, path, errno);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  [[nodiscard]] int get() const {
    return number_;
  }
  int release() {
    return std::exchange(number_, -1);
  }

 private:
  int number_;
};

Result<Descriptor>
open_path(const std::string& path, int flags, std::uint32_t mode = 0) {
  const int number = retry(
      [&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode); });
  if (number == -1) {
    return errno_error("fs.open", path, errno);
  }
  return Descriptor(number);
}

struct OpenFile {
  Descriptor descriptor;
  std::uint64_t size = 0;
};

// What is not a regular file is the caller's mistake, no failure of the system.
Error not_regular(const std::string& path, std::string message) {
  return {
      .code = ErrorCode::kUnsupported,
      .op = "fs.open",
      .message = std::move(message),
      .path = path,
      .detail = "E_NOT_REGULAR"};
}

Result<OpenFile> open_regular(const std::string& path) {
  auto descriptor = open_path(path, O_RDONLY | O_NONBLOCK);
  if (!descriptor) {
    Error error = std::move(descriptor).error();
    return error.detail == "E_NOT_REGULAR"
               ? not_regular(path, std::move(error.message))
               : std::move(error);
  }
  struct ::stat status = {};
  LOCKSTEP_TRY(checked(::fstat(descriptor->get(), &status), "fs.open", path));
  if (!S_ISREG(status.st_mode)) {
    return not_regular(
        path,
        S_ISDIR(status.st_mode)
            ? "expected a regular file, got a directory"
            : "expected a regular file, got a device or pipe");
  }
  return OpenFile{
      *std::move(descriptor),
      static_cast<std::uint64_t>(status.st_size)};
}

class RealReadableFile final : public ReadableFile {
 public:
  RealReadableFile(OpenFile file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  [[nodiscard]] std::uint64_t size() const override {
    return file_.size;
  }

  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >
        static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
      return truncated(offset);
    }
    while (!out.empty()) {
      const ssize_t count = retry([&] {
        return ::pread(
            file_.descriptor.get(),
            out.data(),
            out.size(),
            static_cast<off_t>(offset));
      });
      if (count == -1) {
        return errno_error("fs.read", path_, errno);
      }
      if (count == 0) {
        return truncated(offset);
      }
      out = out.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return {};
  }

 private:
  [[nodiscard]] Error truncated(std::uint64_t offset) const {
    return {
        .code = ErrorCode::kCorrupt,
        .op = "fs.read",
        .message = "the file ends too early",
        .path = path_,
        .offset = offset,
        .detail = "E_TRUNCATED"};
  }
  OpenFile file_;
  std::string path_;
};

class RealWritableFile final : public WritableFile {
 public:
  RealWritableFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Status write(ByteSpan bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = retry([&] {
        return ::write(descriptor_.get(), bytes.data(), bytes.size());
      });
      if (count == -1) {
        return errno_error("fs.write", path_, errno);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
  }

  // EINTR is not retried: fsync has no partial result to go on from.
  Status sync() override {
    return checked(::fsync(descriptor_.get()), "fs.sync", path_);
  }

  Status close() override {
    if (descriptor_.get() == -1) {
      return {};
    }
    // After EINTR Linux has closed the descriptor all the same.
    const int result = ::close(descriptor_.release());
    return result == -1 && errno != EINTR
               ? Status(errno_error("fs.close", path_, errno))
               : Status();
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

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
        .mode = status.st_mode & 07777U};
  }

  Result<std::unique_ptr<ReadableFile>> open_read(
      const std::string& path) override {
    LOCKSTEP_ASSIGN(auto file, open_regular(path));
    return std::unique_ptr<ReadableFile>(
        std::make_unique<RealReadableFile>(std::move(file), path));
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

  Status truncate(const std::string& path, std::uint64_t size) override {
    const int result = retry(
        [&] { return ::truncate(path.c_str(), static_cast<off_t>(size)); });
    return checked(result, "fs.truncate", path);
  }

  Status chmod(const std::string& path, std::uint32_t mode) override {
    return checked(::chmod(path.c_str(), mode), "fs.chmod", path);
  }

  Status rename(const std::string& from, const std::string& to) override {
    return checked(std::rename(from.c_str(), to.c_str()), "fs.rename", to);
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
    return std::unique_ptr<WritableFile>(
        std::make_unique<RealWritableFile>(std::move(descriptor), path));
  }
};

} // namespace

FileSystem& real_fs() {
  static RealFs fs;
  return fs;
}

} // namespace lockstep
