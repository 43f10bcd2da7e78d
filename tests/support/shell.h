// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a command line and keeps its outputs apart.
//   const Outcome ls = run_shell("ls /");
#pragma once

#include <string>

namespace lockstep::test {

/// What a command left.
struct ShellOutcome {
  std::string out = {};
  std::string err = {};
  /// Exit status, or 128 + the signal that ended it.
  int status = -1;
};

/// Runs `command` with `/bin/sh -c`.
ShellOutcome run_shell(const std::string& command);

/// All bytes of a file; empty if it cannot be read.
std::string file_text(const std::string& path);

} // namespace lockstep::test
