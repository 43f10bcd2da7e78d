// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/row_file.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kSyncBytes = RowFile::kMaxPendingBytes / 2;

// Units: bytes of the whole lines within the first `limit` bytes.
Result<std::uint64_t>
end_of_lines(FileSystem& fs, const std::string& path, std::uint64_t limit) {
  constexpr std::uint64_t kBlockBytes = 64 << 10;
  LOCKSTEP_ASSIGN(const auto file, fs.open_read(path));
  std::string block;
  std::uint64_t end = std::min(limit, file->size());
  while (end > 0) {
    block.resize(std::min(end, kBlockBytes));
    const std::uint64_t start = end - block.size();
    LOCKSTEP_TRY(
        file->read_at(start, std::as_writable_bytes(std::span(block))));
    const std::size_t found = block.rfind('\n');
    if (found != std::string::npos) {
      return start + found + 1;
    }
    end = start;
  }
  return end;
}

} // namespace

/// All text is written at its own offset: to write it again doubles nothing.
class RowFile::State {
 public:
  State(FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    static_cast<void>(flush());
  }

  Status open(std::uint64_t keep_bytes) {
    {
      LOCKSTEP_ASSIGN(const auto made, fs_.append(path_)); // if it is missing
      LOCKSTEP_TRY(made->close());
    }
    LOCKSTEP_ASSIGN(file_, fs_.open_update(path_));
    LOCKSTEP_ASSIGN(const FileInfo info, fs_.stat(path_));
    LOCKSTEP_ASSIGN(
        const std::uint64_t end,
        end_of_lines(fs_, path_, keep_bytes));
    if (end < info.size) {
      LOCKSTEP_TRY(fs_.truncate(path_, end));
    }
    LOCKSTEP_TRY(file_->sync());
    LOCKSTEP_TRY(fs_.sync_directory(parent_directory(path_)));
    durable_ = end;
    written_ = durable_;
    reached_ = durable_;
    missing_ = keep_bytes == kKeepAll ? 0 : keep_bytes - durable_;
    return {};
  }

  Status append(std::string_view line) {
    std::unique_lock lock(mutex_);
    Status status = write_pending();
    if (status && tail_.size() > kSyncBytes) {
      lock.unlock();
      const std::unique_lock turn(sync_mutex_, std::try_to_lock);
      status = turn ? sync_in_turn() : std::move(status);
      lock.lock();
    }
    if (!status && pending().size() + line.size() + 1 > kMaxPendingBytes) {
      ++dropped_;
      return status;
    }
    tail_.append(line);
    tail_ += '\n';
    return status ? write_pending() : std::move(status);
  }

  Status flush() {
    const std::scoped_lock lock(mutex_);
    return write_pending();
  }

  Status sync() {
    const std::scoped_lock turn(sync_mutex_);
    return sync_in_turn();
  }

  [[nodiscard]] std::uint64_t size() const {
    const std::scoped_lock lock(mutex_);
    return durable_ + tail_.size();
  }
  [[nodiscard]] std::uint64_t missing_bytes() const {
    return missing_;
  }
  [[nodiscard]] std::uint64_t dropped() const {
    const std::scoped_lock lock(mutex_);
    return dropped_;
  }

 private:
  [[nodiscard]] std::string_view pending() const {
    return std::string_view(tail_).substr(written_ - durable_);
  }

  Status reopen() {
    LOCKSTEP_ASSIGN(const FileInfo info, fs_.stat(path_));
    if (info.size < durable_) {
      return Error{
          .code = ErrorCode::kCorrupt,
          .op = "fs.write",
          .message = format(
              "somebody has cut the file; expected at least {} bytes, got {}",
              durable_,
              info.size),
          .path = path_,
          .detail = "E_TRUNCATED"};
    }
    LOCKSTEP_ASSIGN(file_, fs_.open_update(path_));
    return {};
  }

  Status write_pending() {
    const std::string_view text = pending();
    if (text.empty()) {
      return {};
    }
    if (!file_) {
      LOCKSTEP_TRY(reopen());
    }
    if (Status status = file_->write_at(written_, as_byte_span(text));
        !status) {
      // For readers only; what stays is written over by the next try.
      static_cast<void>(fs_.truncate(path_, reached_));
      return status;
    }
    written_ += text.size();
    reached_ = std::max(reached_, written_);
    return {};
  }

  // With `sync_mutex_` held, `mutex_` not.
  Status sync_in_turn() {
    std::unique_lock lock(mutex_);
    LOCKSTEP_TRY(write_pending());
    if (tail_.empty()) {
      return {};
    }
    const std::uint64_t end = written_;
    auto file = file_;
    lock.unlock();
    Status status = file->sync();
    lock.lock();
    if (status) {
      tail_.erase(0, end - durable_);
      durable_ = end;
      return status;
    }
    // Closed here, so that the lock on the file is free when it is reopened.
    file.reset();
    file_.reset();
    written_ = durable_;
    return status;
  }

  FileSystem& fs_;
  const std::string path_;
  // Held during an fsync, and taken before `mutex_`, which guards all below.
  std::mutex sync_mutex_;
  mutable std::mutex mutex_;
  // Null after a failed fsync. Appending and syncing may overlap.
  std::shared_ptr<WritableFile> file_;
  // All text behind the first `durable_` bytes of the file.
  std::string tail_;
  // Units: bytes, durable_ <= written_ <= reached_. Text up to `written_` need
  // not be written again; text up to `reached_` is in the file, durable or not.
  std::uint64_t durable_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t reached_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t dropped_ = 0;
};

RowFile::RowFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
RowFile::RowFile(RowFile&& other) noexcept = default;
RowFile& RowFile::operator=(RowFile&& other) noexcept = default;
RowFile::~RowFile() = default;

Result<RowFile> RowFile::open(
    FileSystem& fs,
    const std::string& path,
    std::uint64_t keep_bytes) {
  LOCKSTEP_ASSIGN(std::string target, fs.resolve(path));
  auto state = std::make_unique<State>(fs, std::move(target));
  LOCKSTEP_TRY(state->open(keep_bytes));
  return RowFile(std::move(state));
}

Status RowFile::append(std::string_view line) {
  return state_->append(line);
}

Status RowFile::flush() {
  return state_->flush();
}

Status RowFile::sync() {
  return state_->sync();
}

std::uint64_t RowFile::size() const {
  return state_->size();
}

std::uint64_t RowFile::missing_bytes() const {
  return state_->missing_bytes();
}

std::uint64_t RowFile::dropped() const {
  return state_->dropped();
}

} // namespace lockstep
