// SPDX-License-Identifier: BSD-3-Clause
//
// What this program does when a test runs it again in a process of its own.
#pragma once

#include <string_view>

namespace lockstep::test {

/// Starts the devices as `task` says and prints what came of it.
/// `visible`: by the environment; prints the physical numbers.
/// `late`: after a backward pass; prints the error.
int run_child(std::string_view task);

} // namespace lockstep::test
