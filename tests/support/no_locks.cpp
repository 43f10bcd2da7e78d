// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/no_locks.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <system_error>

namespace lockstep::test {
namespace {

// BPF_STMT and BPF_JUMP without casts of C's kind.
constexpr sock_filter load(std::size_t offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<__u32>(offset)};
}
constexpr sock_filter
jump_if(std::uint32_t value, unsigned char yes, unsigned char no) {
  return {BPF_JMP | BPF_JEQ | BPF_K, yes, no, value};
}
constexpr sock_filter give(std::uint32_t answer) {
  return {BPF_RET | BPF_K, 0, 0, answer};
}

bool filter_locks(int error_number) {
  const auto failure =
      SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error_number);
  std::array program{
      load(offsetof(seccomp_data, nr)),
      jump_if(SYS_flock, 5, 0),
      jump_if(SYS_fcntl, 0, 3),
      load(offsetof(seccomp_data, args) + sizeof(__u64)), // the command
      jump_if(F_OFD_SETLK, 2, 0),
      jump_if(F_OFD_GETLK, 1, 0),
      give(SECCOMP_RET_ALLOW),
      give(failure)};
  const sock_fprog filter{
      static_cast<unsigned short>(program.size()),
      program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::string text_of(const std::function<std::string()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return error.what();
  }
}

} // namespace

std::string where_locks_fail(
    int error_number,
    const std::function<std::string()>& work) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return "no pipe";
  }
  const ::pid_t child = ::fork();
  if (child == 0) {
    const std::string text =
        filter_locks(error_number)
            ? text_of(work)
            : "no filter: " + std::generic_category().message(errno);
    const auto size = static_cast<ssize_t>(text.size());
    ::_exit(::write(pipe[1], text.data(), text.size()) == size ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t size = 1; size > 0;) {
    size = ::read(pipe[0], part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(size > 0 ? size : 0));
  }
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

bool can_make_locks_fail() {
  return where_locks_fail(ENOLCK, [] { return std::string(); }).empty();
}

} // namespace lockstep::test
