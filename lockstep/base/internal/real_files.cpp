// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/real_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <limits>

#include "lockstep/base/errno_error.h"

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
      auto from = static_cast<off_t>(offset);
      const ssize_t count = retry([&] {
        return ::copy_file_range(
            real->descriptor(),
            &from,
            descriptor_.get(),
            nullptr,
            length,
            0);
      });
      // 0: the source ends here; -1: not between these file systems, or a
      // real error. Reading and writing tells which.
      if (count <= 0) {
        break;
      }
      offset += static_cast<std::uint64_t>(count);
      length -= static_cast<std::uint64_t>(count);
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

} // namespace

std::unique_ptr<ReadableFile> make_readable(OpenFile file, std::string path) {
  return std::make_unique<RealReadableFile>(std::move(file), std::move(path));
}

std::unique_ptr<WritableFile> make_writable(
    Descriptor descriptor,
    std::string path) {
  return std::make_unique<RealWritableFile>(
      std::move(descriptor),
      std::move(path));
}

} // namespace lockstep::internal
