// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/errno_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

struct ErrnoRow {
  int number = 0;
  ErrorCode code = ErrorCode::kIo;
  std::string_view detail = {};
  std::string_view hint = {};
};

constexpr std::string_view kSpaceHint =
    "free some space, or write to another disk";
constexpr std::string_view kSizeHint =
    "'ulimit -f' shows how large a file may be here, 'ulimit -f unlimited' "
    "takes the limit away; else the disk holds no larger files";
constexpr std::string_view kPermissionHint =
    "'ls -ld' shows who may read and write it, 'chmod u+w' lets its owner "
    "write; or name another file";
constexpr std::string_view kReadOnlyHint =
    "the disk may only be read; write to another one";

constexpr std::array kRows{
    ErrnoRow{.number = ENOENT, .code = ErrorCode::kNotFound},
    ErrnoRow{.number = ENOTDIR, .code = ErrorCode::kNotFound},
    ErrnoRow{.number = ENOSPC, .detail = "E_NO_SPACE", .hint = kSpaceHint},
    ErrnoRow{.number = EDQUOT, .detail = "E_NO_SPACE", .hint = kSpaceHint},
    ErrnoRow{.number = EFBIG, .detail = "E_NO_SPACE", .hint = kSizeHint},
    ErrnoRow{
        .number = EACCES,
        .detail = "E_PERMISSION",
        .hint = kPermissionHint},
    ErrnoRow{
        .number = EPERM,
        .detail = "E_PERMISSION",
        .hint = kPermissionHint},
    ErrnoRow{.number = EROFS, .detail = "E_PERMISSION", .hint = kReadOnlyHint},
    ErrnoRow{.number = EEXIST, .detail = "E_EXISTS"},
    ErrnoRow{.number = EISDIR, .detail = "E_NOT_REGULAR"},
    ErrnoRow{.number = ELOOP, .detail = "E_NOT_REGULAR"},
    ErrnoRow{.number = ENXIO, .detail = "E_NOT_REGULAR"},
};

} // namespace

Error errno_error(
    std::string_view op,
    const std::string& path,
    int error_number) {
  const auto* const row =
      std::ranges::find(kRows, error_number, &ErrnoRow::number);
  const ErrnoRow found = row == kRows.end() ? ErrnoRow{} : *row;
  return {
      .code = found.code,
      .op = std::string(op),
      .message = std::generic_category().message(error_number),
      .hint = std::string(found.hint),
      .path = path,
      .detail = std::string(found.detail)};
}

Error locked_error(std::string_view what, const std::string& path) {
  return {
      .code = ErrorCode::kIo,
      .op = "fs.open",
      .message = format("another process is changing the {}", what),
      .hint = "wait until it is done",
      .path = path,
      .detail = "E_LOCKED"};
}

Error lock_errno_error(const std::string& path, int error_number) {
  // Network and other file systems without locks say it in many ways: Lustre
  // with ENOSYS, NFS without its lock daemon with ENOLCK; where a lock on a
  // file stands for one on a folder, the folder is not open for writing
  // (EBADF).
  constexpr std::array
      kNoLocks{ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, ENOTTY, EBADF};
  Error error = errno_error("fs.lock", path, error_number);
  if (std::ranges::find(kNoLocks, error_number) != kNoLocks.end()) {
    error.message =
        format("the file system knows no locks here: {}", error.message);
    error.hint = "see to it that nobody else writes there meanwhile";
    error.detail = "E_NO_LOCKS";
  }
  return error;
}

} // namespace lockstep
