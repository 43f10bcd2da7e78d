// SPDX-License-Identifier: BSD-3-Clause
//
// How ranks find out that they are on one host, and come to share memory.
#pragma once

#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/distributed/shm/communicator.h"
#include "lockstep/distributed/shm/exchange_texts.h"
#include "lockstep/distributed/shm/heap.h"

namespace lockstep::dist::shm {

/// What ranks of one host share.
struct Shared {
  std::unique_ptr<Communicator> communicator = {};
  Heaps heaps = {};
};

/// A communicator and the heaps of all ranks; `options` without the processes.
/// Errors: kUnavailable, on all ranks alike; those of `exchange`.
Result<Shared> share_memory(
    const internal::ExchangeTexts& exchange,
    CommunicatorOptions options);

} // namespace lockstep::dist::shm
