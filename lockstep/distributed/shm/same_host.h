// SPDX-License-Identifier: BSD-3-Clause
//
// How ranks find out that they are on one host, and come to share memory.
#pragma once

#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/distributed/shm/exchange_texts.h"
#include "lockstep/distributed/shm/heap.h"
#include "lockstep/distributed/shm/room.h"

namespace lockstep::dist::shm {

/// What ranks of one host share.
struct Shared {
  std::unique_ptr<Room> room = {};
  Heaps heaps = {};
};

/// A room and the heaps of all ranks; `options` without the processes.
/// Errors: kUnavailable, on all ranks alike; those of `exchange`.
Result<Shared> share_memory(
    const internal::ExchangeTexts& exchange,
    RoomOptions options);

} // namespace lockstep::dist::shm
