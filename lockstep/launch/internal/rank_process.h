// SPDX-License-Identifier: BSD-3-Clause
//
// One process of a job. It leads a process group of its own, and the kernel
// kills it when the launcher ends, however that happens: it alone, not what it
// has started, if the launcher was killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/descriptor.h"

namespace lockstep::launch {

/// What a process is started with.
struct ProcessStart {
  std::vector<std::string> program = {};
  /// "NAME=value", all of them.
  std::vector<std::string> environment = {};
  /// In place of standard output and error; -1 for the launcher's own.
  int out = -1;
  int err = -1;
};

/// A running process. Threads: belongs to the thread that started it, whose end
/// kills it.
class RankProcess {
 public:
  /// Errors: kNotFound or kIo if the program does not start.
  static Result<RankProcess> start(const ProcessStart& start);

  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  /// Kills what still runs of the group.
  ~RankProcess();

  /// Readable (poll) once the process has ended.
  [[nodiscard]] int descriptor() const {
    return handle_.get();
  }
  [[nodiscard]] pid_t pid() const {
    return pid_;
  }
  /// To the process and all that it has started.
  void signal(int number) const;
  /// Status of a process that has ended, in waitpid's form; nothing while it
  /// runs.
  [[nodiscard]] std::optional<int> status() const;
  /// Lets go of a process that has ended: what it has started may go on.
  void release();

 private:
  RankProcess(pid_t pid, Descriptor handle);

  pid_t pid_ = -1;
  Descriptor handle_;
};

} // namespace lockstep::launch
