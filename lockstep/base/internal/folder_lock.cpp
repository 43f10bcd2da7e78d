// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/folder_lock.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "lockstep/base/internal/process.h"
#include "lockstep/base/internal/utc.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

std::string owner_text() {
  return format(
      "pid {} on {} since {}",
      static_cast<std::int64_t>(::getpid()),
      host_name(),
      utc_text(utc_now()));
}

// "process 123 on box since 2026-11-23 10:00:00 UTC (3 min)"; what is not of
// this form as it is, and without a text only "another process".
std::string describe(const std::string& owner) {
  constexpr std::string_view kPid = "pid ";
  constexpr std::string_view kSince = " since ";
  if (owner.empty()) {
    return "another process";
  }
  if (!owner.starts_with(kPid)) {
    return owner;
  }
  std::string text = "process " + owner.substr(kPid.size());
  const std::size_t since = text.rfind(kSince);
  const auto time =
      since == std::string::npos
          ? std::nullopt
          : parse_utc(std::string_view(text).substr(since + kSince.size()));
  return time ? text + " (" + age_text(utc_now() - *time) + ")" : text;
}

// The text in `.lock`; nothing if it cannot be read, for the lock counts.
std::string read_owner(FileSystem& fs, const std::string& path) {
  constexpr std::size_t kMaxOwnerBytes = 400;
  const auto text = read_text(fs, path);
  return text ? escape(text->substr(0, text->find('\n')), kMaxOwnerBytes) : "";
}

} // namespace

FolderLock::FolderLock(
    FileSystem& fs,
    std::string path,
    std::unique_ptr<WritableFile> file,
    std::string last_owner)
    : fs_(&fs),
      path_(std::move(path)),
      file_(std::move(file)),
      last_owner_(std::move(last_owner)) {}

FolderLock::FolderLock(FolderLock&& other) noexcept = default;

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(fs_, other.fs_);
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(last_owner_, other.last_owner_);
  return *this;
}

FolderLock::~FolderLock() {
  if (file_) {
    static_cast<void>(fs_->truncate(path_, 0));
    static_cast<void>(file_->close());
  }
}

std::string FolderLock::stale_owner() const {
  return file_->missing_lock() == nullptr ? last_owner_ : std::string();
}

std::string FolderLock::warning() const {
  const Error* const missing = file_->missing_lock();
  if (missing == nullptr) {
    return last_owner_.empty()
               ? ""
               : format("it was left by a process that died ({})", last_owner_);
  }
  return format(
      "it cannot be locked, so that another run in it would go unnoticed: {}{}",
      missing->message,
      last_owner_.empty()
          ? ""
          : format("; {} may still be in it", describe(last_owner_)));
}

Result<FolderLock> FolderLock::take(FileSystem& fs, const std::string& folder) {
  std::string path = folder + "/.lock";
  {
    LOCKSTEP_ASSIGN(const auto made, fs.append(path)); // if it is missing
    LOCKSTEP_TRY(made->close());
  }
  auto file = fs.open_update(path);
  std::string owner = read_owner(fs, path);
  if (!file && file.error().detail == "E_LOCKED") {
    return Error{
        .code = ErrorCode::kIo,
        .op = "fs.lock",
        .message = format("{} is in use by {}", folder, describe(owner)),
        .hint = "wait until it ends, or choose another folder",
        .path = path,
        .detail = "E_LOCKED"};
  }
  LOCKSTEP_TRY(file);
  FolderLock lock(fs, path, *std::move(file), std::move(owner));
  LOCKSTEP_TRY(fs.truncate(path, 0));
  const std::string text = owner_text() + "\n";
  LOCKSTEP_TRY(lock.file_->write_at(0, as_byte_span(text)));
  return lock;
}

FolderOwner FolderLock::owner_of(FileSystem& fs, const std::string& folder) {
  const std::string path = folder + "/.lock";
  const auto is_locked = fs.is_locked(path);
  if (is_locked) {
    return {
        .held = *is_locked ? FolderHeld::kYes : FolderHeld::kNo,
        .text = read_owner(fs, path)};
  }
  if (is_locked.error().detail != "E_NO_LOCKS") {
    return {
        .held = is_locked.error().code == ErrorCode::kNotFound
                    ? FolderHeld::kNo
                    : FolderHeld::kUnknown};
  }
  // Who leaves it empties the text.
  std::string text = read_owner(fs, path);
  return {
      .held = text.empty() ? FolderHeld::kNo : FolderHeld::kUnknown,
      .text = std::move(text)};
}

} // namespace lockstep
