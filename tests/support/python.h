// SPDX-License-Identifier: BSD-3-Clause
//
// Runs an oracle script (tests/oracle/) with the wheel's Python: what it
// prints is what PyTorch says.
//   EXPECT_EQ(to_string(*net), run_python("models_print.py", {"resnet18"}));
#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

/// CMake's `LOCKSTEP_PYTHON`, or the environment's if set.
std::string python_program();

/// Standard output of `tests/oracle/<script> args...`, run by that program with
/// the environment and folder of the process's first call: one Python for the
/// process has imported torch, and a fork of it runs the script.
/// Errors: a nonzero exit fails the running test and shows standard error.
std::string run_python(
    const std::string& script,
    const std::vector<std::string>& args = {});

/// The same, by lines; empty ones are left out.
std::vector<std::string> python_lines(
    const std::string& script,
    const std::vector<std::string>& args = {});

} // namespace lockstep::test
