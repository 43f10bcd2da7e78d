// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as threads of one process: distributed code is tried and tested without
// a launcher.
//   const auto errors = dist::run_thread_ranks(2, [](const ProcessGroup& group)
//   {
//     DistributedDataParallel model(net(), {.process_group = group});
//     ...
//   });
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/distributed/process_group.h"

namespace lockstep::dist {

/// Calls `body` in `size` threads at once, each with its own rank's group, and
/// returns when all have ended. The default group stays as it is.
/// Returns what each rank has thrown, as text, by rank; "" where nothing was.
/// `options` may name the backend, the timeout.
std::vector<std::string> run_thread_ranks(
    int size,
    const std::function<void(const ProcessGroup& group)>& body,
    const InitOptions& options = {});

} // namespace lockstep::dist
