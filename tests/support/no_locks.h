// SPDX-License-Identifier: BSD-3-Clause
//
// Stands for a file system that cannot lock files and folders.
//   EXPECT_EQ(where_locks_fail(ENOLCK, [] { return ...; }), "...");
#pragma once

#include <functional>
#include <string>

namespace lockstep::test {

/// What `work` returns in a process of its own, in which (and in the programs
/// that it starts) the kernel answers with `error_number` to whoever locks.
/// Errors: the text "no filter: ..." if the kernel lets nobody do so.
std::string where_locks_fail(
    int error_number,
    const std::function<std::string()>& work);

/// False under an emulator of another processor, which has no such filter.
bool can_make_locks_fail();

} // namespace lockstep::test
