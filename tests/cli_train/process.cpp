// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cli_train/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

namespace lockstep::test {
namespace {

constexpr const char* kProgram = LOCKSTEP_BINARY_DIR "/bin/lockstep-train";

/// Appends what is there; false at the end of the stream.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
  if (count > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return count > 0;
}

} // namespace

Process::Process(const std::vector<std::string>& args) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 ||
      ::pipe2(err.data(), O_CLOEXEC) != 0) {
    std::abort();
  }
  std::vector<char*> argv{const_cast<char*>(kProgram)};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) {
    std::abort();
  }
  if (pid_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::execv(kProgram, argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  stdout_ = out[0];
  stderr_ = err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    (void)wait();
  }
  ::close(stdout_);
  ::close(stderr_);
}

bool Process::wait_for(const std::string& text) {
  while (errors_.find(text) == std::string::npos) {
    if (!read_some(stderr_, errors_)) {
      return false;
    }
  }
  return true;
}

void Process::send(int signal) const {
  // Never kill(-1): that would reach every process of this user.
  if (pid_ > 0) {
    ::kill(pid_, signal);
  }
}

int Process::wait() {
  // One after the other: what goes to stdout always fits into the pipe.
  while (read_some(stderr_, errors_)) {
  }
  while (read_some(stdout_, output_)) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace lockstep::test
