// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/fault_fs.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "lockstep/base/errno_error.h"

namespace lockstep {

/// Counters shared by the file system and its open files.
class FaultFs::Faults {
 public:
  explicit Faults(const FaultPlan& plan)
      : plan_(plan), budget_(plan.byte_budget) {}

  // Counts one operation; an error if it is one that must fail.
  Status next(std::string_view op, const std::string& path) {
    if (plan_.before) {
      plan_.before(op);
    }
    const std::scoped_lock lock(mutex_);
    const std::uint64_t index = operations_++;
    if (index >= plan_.fail_at && index - plan_.fail_at < plan_.failures) {
      return errno_error(op, path, plan_.error_number);
    }
    return {};
  }
  // How many of `wanted` bytes still fit on the disk; takes them.
  std::uint64_t take(std::uint64_t wanted) {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t granted = std::min(wanted, budget_);
    budget_ -= budget_ == FaultPlan::kNever ? 0 : granted;
    return granted;
  }
  [[nodiscard]] std::uint64_t budget() const {
    const std::scoped_lock lock(mutex_);
    return budget_;
  }
  [[nodiscard]] std::uint64_t operations() const {
    const std::scoped_lock lock(mutex_);
    return operations_;
  }
  [[nodiscard]] std::uint64_t short_write_bytes() const {
    return plan_.short_write_bytes;
  }

 private:
  const FaultPlan plan_;
  mutable std::mutex mutex_;
  std::uint64_t operations_ = 0;
  std::uint64_t budget_;
};

namespace {

template <class Faults>
class FaultyReadableFile final : public ReadableFile {
 public:
  FaultyReadableFile(
      std::unique_ptr<ReadableFile> inner,
      std::shared_ptr<Faults> faults,
      std::string path)
      : inner_(std::move(inner)),
        faults_(std::move(faults)),
        path_(std::move(path)) {}
  [[nodiscard]] std::uint64_t size() const override {
    return inner_->size();
  }
  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    LOCKSTEP_TRY(faults_->next("fs.read", path_));
    return inner_->read_at(offset, out);
  }

 private:
  std::unique_ptr<ReadableFile> inner_;
  std::shared_ptr<Faults> faults_;
  std::string path_;
};

template <class Faults>
class FaultyWritableFile final : public WritableFile {
 public:
  FaultyWritableFile(
      std::unique_ptr<WritableFile> inner,
      std::shared_ptr<Faults> faults,
      std::string path)
      : inner_(std::move(inner)),
        faults_(std::move(faults)),
        path_(std::move(path)) {}

  Status write(ByteSpan bytes) override {
    if (Status fault = faults_->next("fs.write", path_); !fault) {
      const std::uint64_t part =
          std::min<std::uint64_t>(faults_->short_write_bytes(), bytes.size());
      static_cast<void>(inner_->write(bytes.first(part)));
      return fault;
    }
    const std::uint64_t granted = faults_->take(bytes.size());
    LOCKSTEP_TRY(inner_->write(bytes.first(granted)));
    return granted == bytes.size()
               ? Status()
               : Status(errno_error("fs.write", path_, ENOSPC));
  }

  Status write_at(std::uint64_t offset, ByteSpan bytes) override {
    const bool is_atomic =
        !bytes.empty() &&
        offset / kSectorBytes == (offset + bytes.size() - 1) / kSectorBytes;
    if (Status fault = faults_->next("fs.write", path_); !fault) {
      const std::uint64_t part = is_atomic ? 0
                                           : std::min<std::uint64_t>(
                                                 faults_->short_write_bytes(),
                                                 bytes.size());
      static_cast<void>(inner_->write_at(offset, bytes.first(part)));
      return fault;
    }
    const std::uint64_t granted = faults_->take(bytes.size());
    if (granted == bytes.size()) {
      return inner_->write_at(offset, bytes);
    }
    if (!is_atomic) {
      LOCKSTEP_TRY(inner_->write_at(offset, bytes.first(granted)));
    }
    return errno_error("fs.write", path_, ENOSPC);
  }

  Status reserve(std::uint64_t bytes) override {
    LOCKSTEP_TRY(faults_->next("fs.reserve", path_));
    return inner_->reserve(bytes);
  }

  // No operation: it can fail in no other way than a later write does.
  void expect_sync() override {
    inner_->expect_sync();
  }

  Status sync() override {
    Status fault = faults_->next("fs.sync", path_);
    pages_dropped_ = pages_dropped_ || !fault;
    if (!fault || pages_dropped_) {
      return fault;
    }
    return inner_->sync();
  }

  Status close() override {
    Status fault = faults_->next("fs.close", path_);
    Status closed = inner_->close();
    return fault ? std::move(closed) : std::move(fault);
  }

 private:
  std::unique_ptr<WritableFile> inner_;
  std::shared_ptr<Faults> faults_;
  std::string path_;
  bool pages_dropped_ = false;
};

} // namespace

FaultFs::FaultFs(FileSystem& inner, const FaultPlan& plan)
    : faults_(std::make_shared<Faults>(plan)), inner_(inner) {}

std::uint64_t FaultFs::operations() const {
  return faults_->operations();
}

Result<FileInfo> FaultFs::stat(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.stat", path));
  return inner_.stat(path);
}

Result<std::unique_ptr<ReadableFile>> FaultFs::open_read(
    const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  LOCKSTEP_ASSIGN(auto file, inner_.open_read(path));
  return std::unique_ptr<ReadableFile>(
      std::make_unique<FaultyReadableFile<Faults>>(
          std::move(file),
          faults_,
          path));
}

Result<std::shared_ptr<FileMapping>> FaultFs::map(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.map", path));
  return inner_.map(path);
}

Result<std::unique_ptr<WritableFile>> FaultFs::create(
    const std::string& path,
    std::uint32_t mode) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  LOCKSTEP_ASSIGN(auto file, inner_.create(path, mode));
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile<Faults>>(
          std::move(file),
          faults_,
          path));
}

Result<std::unique_ptr<WritableFile>> FaultFs::append(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  LOCKSTEP_ASSIGN(auto file, inner_.append(path));
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile<Faults>>(
          std::move(file),
          faults_,
          path));
}

Result<std::unique_ptr<WritableFile>> FaultFs::open_update(
    const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  LOCKSTEP_ASSIGN(auto file, inner_.open_update(path));
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile<Faults>>(
          std::move(file),
          faults_,
          path));
}

Result<std::unique_ptr<PathLock>> FaultFs::lock_directory(
    const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  return inner_.lock_directory(path);
}

Result<bool> FaultFs::is_locked(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  return inner_.is_locked(path);
}

Status FaultFs::check_writable(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  return inner_.check_writable(path);
}

Status FaultFs::truncate(const std::string& path, std::uint64_t size) {
  LOCKSTEP_TRY(faults_->next("fs.truncate", path));
  return inner_.truncate(path, size);
}

Status FaultFs::chmod(const std::string& path, std::uint32_t mode) {
  LOCKSTEP_TRY(faults_->next("fs.chmod", path));
  return inner_.chmod(path, mode);
}

Status FaultFs::copy_metadata(const std::string& from, const std::string& to) {
  LOCKSTEP_TRY(faults_->next("fs.chmod", to));
  return inner_.copy_metadata(from, to);
}

Status FaultFs::symlink(const std::string& target, const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.symlink", path));
  return inner_.symlink(target, path);
}

Status FaultFs::rename(const std::string& from, const std::string& to) {
  LOCKSTEP_TRY(faults_->next("fs.rename", to));
  return inner_.rename(from, to);
}

Status FaultFs::rename_new(const std::string& from, const std::string& to) {
  LOCKSTEP_TRY(faults_->next("fs.rename", to));
  return inner_.rename_new(from, to);
}

Status FaultFs::remove(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.remove", path));
  return inner_.remove(path);
}

Status FaultFs::sync_directory(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.sync_directory", path));
  return inner_.sync_directory(path);
}

Status FaultFs::create_directories(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.create_directories", path));
  return inner_.create_directories(path);
}

Result<std::vector<std::string>> FaultFs::list(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.list", path));
  return inner_.list(path);
}

Result<std::string> FaultFs::resolve(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.resolve", path));
  return inner_.resolve(path);
}

Result<std::uint64_t> FaultFs::free_space(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.free_space", path));
  LOCKSTEP_ASSIGN(const std::uint64_t free, inner_.free_space(path));
  return std::min(free, faults_->budget());
}

} // namespace lockstep
