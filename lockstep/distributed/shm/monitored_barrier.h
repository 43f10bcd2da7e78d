// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include "lockstep/distributed/shm/byte_collectives.h"

namespace lockstep::dist::shm {

/// Rank 0 waits for the others one after the other. Errors: throws
/// std::runtime_error in the words of c10d's Gloo: on rank 0 with the first
/// that does not come, or all of them with `wait_all`.
void monitored_barrier(
    const Place& place,
    std::chrono::milliseconds timeout,
    bool wait_all);

} // namespace lockstep::dist::shm
