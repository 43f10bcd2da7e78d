// SPDX-License-Identifier: BSD-3-Clause
//
// What this program does when a test runs it again in a process of its own,
// where devices can be started anew.
#pragma once

#include <string_view>

namespace lockstep::test {

/// `list`: prints "sim:0=1 sim:1=3", devices and their physical numbers.
/// `second`: prints the error of asking for sim:1 when sim is started.
/// `late`: changes the variable after the start and prints what is warned of.
int run_child(std::string_view task);

} // namespace lockstep::test
