// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

// O_NONBLOCK on the shared descriptor would reach the shell and the ranks, too.
// None for what cannot be opened again (a socket) or never makes one wait.
Descriptor opened_again(int number) {
  struct stat info {};
  const bool may_wait = ::fstat(number, &info) == 0 &&
                        (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
  return may_wait ? Descriptor(::open(
                        format("/proc/self/fd/{}", number).c_str(),
                        O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))
                  : Descriptor();
}

} // namespace

Console::Console(int number) : number_(number), own_(opened_again(number)) {}

void Console::write(std::string_view text) {
  kept_.append(text);
  flush();
}

void Console::flush() {
  std::string_view left = kept_;
  pollfd entry{descriptor(), POLLOUT, 0};
  // As much as a pipe takes without waiting once it is ready.
  while (!left.empty() && ::poll(&entry, 1, 0) > 0) {
    const ssize_t done = ::write(
        entry.fd,
        left.data(),
        std::min<std::size_t>(left.size(), PIPE_BUF));
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) {
      break;
    }
    left.remove_prefix(done < 0 ? left.size() : static_cast<std::size_t>(done));
  }
  kept_.erase(0, kept_.size() - left.size());
}

} // namespace lockstep::launch
