// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) {
    list.push_back(const_cast<char*>(word.c_str())); // NOLINT(*-const-cast)
  }
  list.push_back(nullptr);
  return list;
}

// In the child, up to exec: only calls that are safe after fork.
[[noreturn]] void become(
    const ProcessStart& start,
    char* const* program,
    char* const* environment,
    pid_t launcher,
    int report) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) {
    ::_exit(1); // it ended before prctl
  }
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (start.out >= 0) {
    ::dup2(start.out, STDOUT_FILENO);
  }
  if (start.err >= 0) {
    ::dup2(start.err, STDERR_FILENO);
  }
  ::execvpe(*program, program, environment);
  const int code = errno;
  static_cast<void>(!::write(report, &code, sizeof code));
  ::_exit(127);
}

Error does_not_start(const std::string& program, int code) {
  return {
      .code = code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
      .op = "run.start",
      // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
      .message = format("the program does not start: {}", std::strerror(code)),
      .hint = code == ENOENT && program.find('/') == std::string::npos
                  ? format("is it './{}'?", program)
              : code == EACCES ? "is it executable?"
                               : "",
      .path = program};
}

} // namespace

RankProcess::RankProcess(pid_t pid, Descriptor handle)
    : pid_(pid), handle_(std::move(handle)) {}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), handle_(std::move(other.handle_)) {}

RankProcess& RankProcess::operator=(RankProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(handle_, other.handle_);
  return *this;
}

RankProcess::~RankProcess() {
  if (pid_ > 0) {
    signal(SIGKILL);
    release();
  }
}

Result<RankProcess> RankProcess::start(const ProcessStart& start) {
  const std::vector<char*> program = pointers(start.program);
  const std::vector<char*> environment = pointers(start.environment);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return does_not_start(start.program.front(), errno);
  }
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  ::signal(SIGCHLD, SIG_DFL); // ignored, it would lose how the process ended
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return does_not_start(start.program.front(), errno);
  }
  if (pid == 0) {
    become(start, program.data(), environment.data(), launcher, writing.get());
  }
  writing.reset();
  RankProcess process(pid, process_handle(pid));
  int code = 0;
  if (::read(reading.get(), &code, sizeof code) == sizeof code) {
    return does_not_start(start.program.front(), code);
  }
  if (!process.handle_) {
    return does_not_start(start.program.front(), errno);
  }
  return process;
}

void RankProcess::signal(int number) const {
  ::kill(-pid_, number);
}

std::optional<int> RankProcess::status() const {
  // It stays a zombie: so the number of the group stays taken.
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG);
  if (info.si_pid == 0) { // NOLINT(*-union-access): its interface
    return std::nullopt;
  }
  const int value = info.si_status; // NOLINT(*-union-access): its interface
  return info.si_code == CLD_EXITED ? W_EXITCODE(value, 0)
                                    : W_EXITCODE(0, value);
}

void RankProcess::release() {
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

} // namespace lockstep::launch
