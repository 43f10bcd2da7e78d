// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/growing_file.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kSyncBytes = GrowingFile::kMaxPendingBytes / 2;

} // namespace

GrowingFile::GrowingFile(FileSystem& fs, std::string path)
    : fs_(fs), path_(std::move(path)) {}

GrowingFile::~GrowingFile() {
  static_cast<void>(flush());
}

Result<std::unique_ptr<GrowingFile>>
GrowingFile::open(FileSystem& fs, const std::string& path, const Kept& kept) {
  std::unique_ptr<GrowingFile> file(new GrowingFile(fs, path));
  LOCKSTEP_TRY(file->start(kept));
  return file;
}

Status GrowingFile::start(const Kept& kept) {
  {
    LOCKSTEP_ASSIGN(const auto made, fs_.append(path_)); // if it is missing
    LOCKSTEP_TRY(made->close());
  }
  LOCKSTEP_ASSIGN(file_, fs_.open_update(path_));
  LOCKSTEP_ASSIGN(const FileInfo info, fs_.stat(path_));
  std::uint64_t end = 0;
  if (kept) {
    LOCKSTEP_ASSIGN(end, kept());
  }
  if (end < info.size) {
    LOCKSTEP_TRY(fs_.truncate(path_, end));
  }
  LOCKSTEP_TRY(file_->sync());
  LOCKSTEP_TRY(fs_.sync_directory(parent_directory(path_)));
  durable_ = end;
  written_ = durable_;
  reached_ = durable_;
  return {};
}

Status GrowingFile::append(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  Status status = write_pending();
  if (status && tail_.size() > kSyncBytes) {
    lock.unlock();
    const std::unique_lock turn(sync_mutex_, std::try_to_lock);
    status = turn ? sync_in_turn() : std::move(status);
    lock.lock();
  }
  if (!status && pending().size() + bytes.size() > kMaxPendingBytes) {
    ++dropped_;
    return status;
  }
  tail_.append(bytes);
  return status ? write_pending() : std::move(status);
}

Status GrowingFile::flush() {
  const std::scoped_lock lock(mutex_);
  return write_pending();
}

Status GrowingFile::sync() {
  const std::scoped_lock turn(sync_mutex_);
  return sync_in_turn();
}

std::uint64_t GrowingFile::size() const {
  const std::scoped_lock lock(mutex_);
  return durable_ + tail_.size();
}

std::uint64_t GrowingFile::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

std::string_view GrowingFile::pending() const {
  return std::string_view(tail_).substr(written_ - durable_);
}

Status GrowingFile::reopen() {
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

Status GrowingFile::write_pending() {
  const std::string_view bytes = pending();
  if (bytes.empty()) {
    return {};
  }
  if (!file_) {
    LOCKSTEP_TRY(reopen());
  }
  if (Status status = file_->write_at(written_, as_byte_span(bytes)); !status) {
    // For readers only; what stays is written over by the next try.
    static_cast<void>(fs_.truncate(path_, reached_));
    return status;
  }
  written_ += bytes.size();
  reached_ = std::max(reached_, written_);
  return {};
}

// With `sync_mutex_` held, `mutex_` not.
Status GrowingFile::sync_in_turn() {
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

} // namespace lockstep
