// SPDX-License-Identifier: BSD-3-Clause
//
// What a program of tests does when one of them runs it again in a process of
// its own, where devices can be started anew.
#pragma once

#include <string_view>

namespace lockstep::test {

/// Starts the devices as `task` says and prints what came of it. Each program
/// has its own tasks.
int run_child(std::string_view task);

} // namespace lockstep::test
