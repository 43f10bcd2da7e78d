// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/real_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/internal/kernel_pipe.h"

namespace lockstep::internal {

Status checked(int result, std::string_view op, const std::string& path) {
  if (result != -1) {
    return {};
  }
  return errno_error(op, path, errno);
}

Result<Descriptor>
open_path(const std::string& path, int flags, std::uint32_t mode) {
  const int number = retry(
      [&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode); });
  if (number == -1) {
    return errno_error("fs.open", path, errno);
  }
  return Descriptor(number);
}

namespace {

// What is not a regular file is the caller's mistake, no failure of the system.
Error not_regular(const std::string& path, std::string message) {
  return {
      .code = ErrorCode::kUnsupported,
      .op = "fs.open",
      .message = std::move(message),
      .path = path,
      .detail = "E_NOT_REGULAR"};
}

} // namespace

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

namespace {

class RealReadableFile final : public ReadableFile {
 public:
  RealReadableFile(OpenFile file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  [[nodiscard]] std::uint64_t size() const override {
    return file_.size;
  }
  [[nodiscard]] int descriptor() const {
    return file_.descriptor.get();
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

// What a disk gets at a time before the sync: enough to keep it busy.
constexpr std::uint64_t kEarlyBytes = 8 << 20;
constexpr std::uint64_t kPageBytes = 4096;

// True where the server of a file copies by itself what lies on it.
bool is_remote(int descriptor) {
  struct ::statfs status = {};
  return ::fstatfs(descriptor, &status) == 0 &&
         (status.f_type == NFS_SUPER_MAGIC ||
          status.f_type == SMB2_SUPER_MAGIC ||
          status.f_type == CIFS_SUPER_MAGIC ||
          status.f_type == CEPH_SUPER_MAGIC ||
          status.f_type == FUSE_SUPER_MAGIC);
}

class RealWritableFile final : public WritableFile {
 public:
  RealWritableFile(
      Descriptor descriptor,
      std::string path,
      std::optional<Error> missing_lock)
      : descriptor_(std::move(descriptor)),
        path_(std::move(path)),
        missing_lock_(std::move(missing_lock)) {}

  Status write(ByteSpan bytes) override {
    while (!bytes.empty()) {
      const std::size_t length =
          std::min<std::uint64_t>(bytes.size(), kEarlyBytes);
      const ssize_t count = retry(
          [&] { return ::write(descriptor_.get(), bytes.data(), length); });
      if (count == -1) {
        return errno_error("fs.write", path_, errno);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      LOCKSTEP_TRY(advance(static_cast<std::uint64_t>(count)));
    }
    return {};
  }

  Status write_at(std::uint64_t offset, ByteSpan bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = retry([&] {
        return ::pwrite(
            descriptor_.get(),
            bytes.data(),
            bytes.size(),
            static_cast<off_t>(offset));
      });
      if (count == -1) {
        return errno_error("fs.write", path_, errno);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return {};
  }

  Status copy_from(
      ReadableFile& source,
      std::uint64_t offset,
      std::uint64_t length) override {
    auto* real = dynamic_cast<RealReadableFile*>(&source);
    while (real != nullptr && length > 0) {
      LOCKSTEP_ASSIGN(
          const std::uint64_t count,
          copy_in_kernel(real->descriptor(), offset, length));
      // The source ends here, or the kernel cannot: reading tells which.
      if (count == 0) {
        break;
      }
      offset += count;
      length -= count;
      LOCKSTEP_TRY(advance(count));
    }
    return length == 0 ? Status()
                       : WritableFile::copy_from(source, offset, length);
  }

  Status reserve(std::uint64_t bytes) override {
    const int result = retry([&] {
      return ::fallocate(
          descriptor_.get(),
          FALLOC_FL_KEEP_SIZE,
          0,
          static_cast<off_t>(bytes));
    });
    const bool is_full = result == -1 && (errno == ENOSPC || errno == EDQUOT);
    return is_full ? Status(errno_error("fs.reserve", path_, errno)) : Status();
  }

  void expect_sync() override {
    const off_t end = ::lseek(descriptor_.get(), 0, SEEK_END);
    expects_sync_ = end >= 0;
    position_ = expects_sync_ ? static_cast<std::uint64_t>(end) : 0;
    given_ = position_;
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

  [[nodiscard]] const Error* missing_lock() const override {
    return missing_lock_ ? &*missing_lock_ : nullptr;
  }

 private:
  bool is_on_server() {
    if (!is_remote_) {
      is_remote_ = is_remote(descriptor_.get());
    }
    return *is_remote_;
  }

  // Some of the bytes; 0 if the kernel cannot copy (further) between these
  // files. Blocks can be shared from page to page only; what is not shared is
  // faster through a pipe that is larger than the kernel's own.
  Result<std::uint64_t>
  copy_in_kernel(int source, std::uint64_t offset, std::uint64_t length) {
    if ((position_ | offset) % kPageBytes == 0 || is_on_server()) {
      auto from = static_cast<off_t>(offset);
      const ssize_t count = retry([&] {
        return ::copy_file_range(
            source,
            &from,
            descriptor_.get(),
            nullptr,
            std::min(length, kEarlyBytes),
            0);
      });
      if (count > 0) {
        return static_cast<std::uint64_t>(count);
      }
    }
    const std::int64_t moved =
        pipe_.move(source, offset, descriptor_.get(), length);
    if (moved < 0) {
      return errno_error("fs.write", path_, static_cast<int>(-moved));
    }
    return static_cast<std::uint64_t>(moved);
  }

  // After `count` bytes more: gives the disk what has gathered for it. Not the
  // last page, which still grows. Nothing waits here for the disk, and `sync`
  // covers all bytes again; only what has failed by now is told.
  Status advance(std::uint64_t count) {
    position_ += count;
    if (!expects_sync_ || position_ - given_ < kEarlyBytes) {
      return {};
    }
    const std::uint64_t end = position_ - position_ % kPageBytes;
    const int result = ::sync_file_range(
        descriptor_.get(),
        static_cast<off_t>(given_),
        static_cast<off_t>(end - given_),
        SYNC_FILE_RANGE_WRITE);
    given_ = end;
    const bool is_unknown =
        result == -1 && (errno == ENOSYS || errno == EINVAL || errno == ESPIPE);
    expects_sync_ = !is_unknown;
    return is_unknown ? Status() : checked(result, "fs.write", path_);
  }

  Descriptor descriptor_;
  std::string path_;
  std::optional<Error> missing_lock_;
  // Units: bytes. `given_`: up to where the disk has been told to write.
  std::uint64_t position_ = 0;
  std::uint64_t given_ = 0;
  bool expects_sync_ = false;
  std::optional<bool> is_remote_ = {};
  KernelPipe pipe_;
};

} // namespace

std::unique_ptr<ReadableFile> make_readable(OpenFile file, std::string path) {
  return std::make_unique<RealReadableFile>(std::move(file), std::move(path));
}

std::unique_ptr<WritableFile> make_writable(
    Descriptor descriptor,
    std::string path,
    std::optional<Error> missing_lock) {
  return std::make_unique<RealWritableFile>(
      std::move(descriptor),
      std::move(path),
      std::move(missing_lock));
}

} // namespace lockstep::internal
