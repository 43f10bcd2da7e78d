// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of an attempt have ended, and what is said about it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::launch {

/// How one rank has ended.
struct RankEnd {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  /// As waitpid gives it.
  int status = 0;
  std::chrono::system_clock::time_point time = {};
  /// The launcher had asked it to end.
  bool was_stopped = false;
  /// Its folder, with log and error files; "" if it has left none.
  std::string folder = {};
  /// What it has written into its error file; "" if nothing.
  std::string message = {};
  /// It failed only because another rank had.
  bool is_follow_on = false;

  [[nodiscard]] bool has_failed() const {
    return status != 0 && !was_stopped;
  }
};

/// Fills `message` and `is_follow_on` from the rank's error file, if there is
/// one, in either of torchrun's forms.
void read_error_file(FileSystem& fs, RankEnd& end);

/// Exit status of a shell: the code, or 128 and the signal.
int exit_code(int status);

/// What failed first: it stands first in `ends` among those that are not
/// follow-on failures. Null if none failed.
const RankEnd* root_cause(const std::vector<RankEnd>& ends);

/// Several lines: the first failure, the others, who was stopped. `ends` in the
/// order in which they ended, at least one failed.
std::string failure_text(const std::vector<RankEnd>& ends);

} // namespace lockstep::launch
