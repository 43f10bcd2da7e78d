// SPDX-License-Identifier: BSD-3-Clause
//
// Other processes, and the machine that they are on.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "lockstep/base/internal/descriptor.h"

namespace lockstep {

/// A handle of a running process, which stays its own when the number is given
/// to another one; it can be read from (poll) once the process has ended. None
/// if there is no such process (errno).
Descriptor process_handle(pid_t pid);

/// A file in memory that other processes can be given; it is gone with the last
/// of its descriptors. `name` is for /proc alone. None where the system has no
/// such files (errno).
Descriptor memory_file(const char* name);

/// Equal for processes that see each other: this boot of the machine, and the
/// container. One word; empty if the system does not say.
std::string host_id();

/// What people call the machine.
std::string host_name();

/// Cores that this process may use, which taskset and cpusets restrict; a share
/// of their time (docker --cpus) does not count. At least 1.
int usable_cores();

/// "X" of the first line "name : X" of /proc/cpuinfo, given as `text`; empty if
/// there is none.
std::string cpu_fact(const std::string& text, std::string_view name);

} // namespace lockstep
