// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/rename_new.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "lockstep/base/internal/real_files.h"

namespace lockstep {
namespace {

// What kernels answer for a call that the file system does not know. FAT and
// some network file systems say EPERM to a link.
bool is_unknown_call(int error_number) {
  constexpr std::array kNumbers{EINVAL, ENOSYS, EPERM, EOPNOTSUPP, EMLINK};
  return std::ranges::find(kNumbers, error_number) != kNumbers.end();
}

// Takes the name, then renames over it. Of two who race here one gets the name.
// Not one step, though: a crash between the two leaves an empty file, and who
// replaces the empty file in between (with a plain rename) loses his.
int claim_and_rename(const char* from, const char* to) {
  const int descriptor =
      ::open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor == -1) {
    return -1;
  }
  ::close(descriptor);
  const int result = std::rename(from, to);
  if (result == -1) {
    const int why = errno;
    ::unlink(to);
    errno = why;
  }
  return result;
}

} // namespace

RenameCalls rename_calls() {
  return {
      .rename_noreplace =
          [](const char* from, const char* to) {
            return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
          },
      .link = ::link};
}

Status rename_new(
    const std::string& from,
    const std::string& to,
    const RenameCalls& calls) {
  int result = calls.rename_noreplace(from.c_str(), to.c_str());
  if (result == -1 && is_unknown_call(errno)) {
    // A file system without this flag (NFS) still links in one step.
    result = calls.link(from.c_str(), to.c_str());
    if (result == 0) {
      result = ::unlink(from.c_str());
    } else if (is_unknown_call(errno)) {
      result = claim_and_rename(from.c_str(), to.c_str());
    }
  }
  return internal::checked(result, "fs.rename", to);
}

} // namespace lockstep
