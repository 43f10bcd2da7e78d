// SPDX-License-Identifier: BSD-3-Clause
//
// A store whose calls end. Those of c10d give up on a key that does not come,
// but not on a server that is stopped or cut off: from its connection they read
// for good.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace lockstep::dist::internal {

/// What `make` makes. No call lasts longer than its timeout (mostly the
/// store's) and a second, nor does `make`. `name`, for messages: "the store at
/// HOST, which rank 0 holds".
/// Ownership: `make` owns what it uses. One thread makes the calls, others only
/// while it is busy; a thread may be left behind with its call.
/// Threads: safe to call from several.
/// Errors: those of the store; throws kTimeout when the time is over, and at
/// once while an earlier call still waits.
c10::intrusive_ptr<c10d::Store> timed_store(
    const std::string& name,
    std::chrono::milliseconds timeout,
    const std::function<c10::intrusive_ptr<c10d::Store>()>& make);

} // namespace lockstep::dist::internal
