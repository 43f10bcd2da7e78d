// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/fault_fs.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "lockstep/base/internal/errno_error.h"

namespace lockstep {

/// Counters and pages shared by the file system and its open files.
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
  void note_write(
      const std::string& path,
      std::uint64_t offset,
      std::uint64_t size) {
    const std::scoped_lock lock(mutex_);
    const Range range{.begin = offset, .end = offset + size};
    pages_[path].dirty.add(range);
    pages_[path].dropped.take_away(range);
  }
  void drop_pages(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    Pages& pages = pages_[path];
    pages.dropped.add(std::exchange(pages.dirty, {}));
  }
  // False if pages are missing: a sync succeeds then, but brings nothing.
  bool clean_pages(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    pages_[path].dirty = {};
    return pages_[path].dropped.empty();
  }
  void note_size(const std::string& path, std::uint64_t size) {
    const std::scoped_lock lock(mutex_);
    constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();
    pages_[path].dirty.take_away({.begin = size, .end = kEnd});
    pages_[path].dropped.take_away({.begin = size, .end = kEnd});
  }
  // Another file is there now, or none.
  void note_replaced(const std::string& path, const std::string& from = {}) {
    const std::scoped_lock lock(mutex_);
    pages_[path] = std::exchange(pages_[from], {});
  }

 private:
  /// Bytes `begin` to `end` of a file; none if they are equal.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    [[nodiscard]] bool empty() const {
      return begin >= end;
    }
    void add(const Range& other) {
      if (!other.empty()) {
        *this =
            empty()
                ? other
                : Range{std::min(begin, other.begin), std::max(end, other.end)};
      }
    }
    // A part in the middle stays: what is left is still one range.
    void take_away(const Range& other) {
      if (other.begin <= begin) {
        begin = std::max(begin, other.end);
      } else if (other.end >= end) {
        end = std::min(end, other.begin);
      }
    }
  };

  /// What of a file the kernel has not brought to the disk.
  struct Pages {
    /// Written since the last sync.
    Range dirty = {};
    /// Dropped by a failed sync and not written again.
    Range dropped = {};
  };

  const FaultPlan plan_;
  mutable std::mutex mutex_;
  std::uint64_t operations_ = 0;
  std::uint64_t budget_;
  std::map<std::string, Pages> pages_;
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
      std::string path,
      std::uint64_t end)
      : inner_(std::move(inner)),
        faults_(std::move(faults)),
        path_(std::move(path)),
        end_(end) {}

  Status write(ByteSpan bytes) override {
    if (Status fault = faults_->next("fs.write", path_); !fault) {
      const std::uint64_t part =
          std::min<std::uint64_t>(faults_->short_write_bytes(), bytes.size());
      static_cast<void>(add(bytes.first(part)));
      return fault;
    }
    const std::uint64_t granted = faults_->take(bytes.size());
    LOCKSTEP_TRY(add(bytes.first(granted)));
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
      static_cast<void>(put(offset, bytes.first(part)));
      return fault;
    }
    const std::uint64_t granted = faults_->take(bytes.size());
    if (granted == bytes.size()) {
      return put(offset, bytes);
    }
    if (!is_atomic) {
      LOCKSTEP_TRY(put(offset, bytes.first(granted)));
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
    if (Status fault = faults_->next("fs.sync", path_); !fault) {
      faults_->drop_pages(path_);
      return fault;
    }
    return faults_->clean_pages(path_) ? inner_->sync() : Status();
  }

  Status close() override {
    Status fault = faults_->next("fs.close", path_);
    Status closed = inner_->close();
    return fault ? std::move(closed) : std::move(fault);
  }

  [[nodiscard]] const Error* missing_lock() const override {
    return inner_->missing_lock();
  }

 private:
  Status add(ByteSpan bytes) {
    faults_->note_write(path_, end_, bytes.size());
    end_ += bytes.size();
    return inner_->write(bytes);
  }
  Status put(std::uint64_t offset, ByteSpan bytes) {
    faults_->note_write(path_, offset, bytes.size());
    return inner_->write_at(offset, bytes);
  }

  std::unique_ptr<WritableFile> inner_;
  std::shared_ptr<Faults> faults_;
  std::string path_;
  // Units: bytes. Where `write` goes on.
  std::uint64_t end_;
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

Result<std::unique_ptr<WritableFile>> FaultFs::faulty(
    std::unique_ptr<WritableFile> file,
    const std::string& path,
    std::uint64_t end) const {
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile<Faults>>(
          std::move(file),
          faults_,
          path,
          end));
}

Result<std::unique_ptr<WritableFile>> FaultFs::create(
    const std::string& path,
    std::uint32_t mode) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  LOCKSTEP_ASSIGN(auto file, inner_.create(path, mode));
  faults_->note_replaced(path);
  return faulty(std::move(file), path, 0);
}

Result<std::unique_ptr<WritableFile>> FaultFs::append(const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  LOCKSTEP_ASSIGN(auto file, inner_.append(path));
  LOCKSTEP_ASSIGN(const FileInfo info, inner_.stat(path));
  return faulty(std::move(file), path, info.size);
}

Result<std::unique_ptr<WritableFile>> FaultFs::open_update(
    const std::string& path) {
  LOCKSTEP_TRY(faults_->next("fs.open", path));
  LOCKSTEP_ASSIGN(auto file, inner_.open_update(path));
  LOCKSTEP_ASSIGN(const FileInfo info, inner_.stat(path));
  return faulty(std::move(file), path, info.size);
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
  faults_->note_size(path, size);
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
  LOCKSTEP_TRY(inner_.rename(from, to));
  faults_->note_replaced(to, from);
  return {};
}

Status FaultFs::rename_new(const std::string& from, const std::string& to) {
  LOCKSTEP_TRY(faults_->next("fs.rename", to));
  LOCKSTEP_TRY(inner_.rename_new(from, to));
  faults_->note_replaced(to, from);
  return {};
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
