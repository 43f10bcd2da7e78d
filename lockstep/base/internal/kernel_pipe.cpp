// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/kernel_pipe.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

namespace lockstep::internal {
namespace {

// What any user may ask for. The kernel's default of 64 KiB is slower by half,
// above all while the disk is writing.
constexpr std::uint64_t kPipeBytes = 1 << 20;

} // namespace

bool KernelPipe::open() {
  if (write_end_) {
    return true;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) == -1) {
    return false;
  }
  read_end_.emplace(ends[0]);
  write_end_.emplace(ends[1]);
  // A smaller pipe works, too.
  static_cast<void>(
      ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kPipeBytes)));
  return true;
}

std::int64_t
KernelPipe::move(int from, std::uint64_t offset, int to, std::uint64_t length) {
  if (!open()) {
    return 0;
  }
  auto at = static_cast<off64_t>(offset);
  const ssize_t filled = retry([&] {
    return ::splice(
        from,
        &at,
        write_end_->get(),
        nullptr,
        std::min(length, kPipeBytes),
        0);
  });
  return filled <= 0 ? 0 : drain(to, filled);
}

// All that is in the pipe goes on, or the pipe with what is left goes.
std::int64_t KernelPipe::drain(int to, std::int64_t filled) {
  std::int64_t moved = 0;
  while (moved < filled) {
    const ssize_t count = retry([&] {
      return ::splice(
          read_end_->get(),
          nullptr,
          to,
          nullptr,
          static_cast<std::size_t>(filled - moved),
          0);
    });
    if (count <= 0) {
      const int error = errno;
      read_end_.reset();
      write_end_.reset();
      // EINVAL: a target that cannot be spliced to (O_APPEND, some systems).
      const bool is_refused = count == -1 && error != EINVAL;
      return is_refused ? -std::int64_t{error} : moved;
    }
    moved += count;
  }
  return moved;
}

} // namespace lockstep::internal
