// SPDX-License-Identifier: BSD-3-Clause
//
// How ranks find out that they are on one host, and come into one room.
#pragma once

#include <memory>

#include "lockstep/base/result.h"
#include "lockstep/dist/internal/exchange_texts.h"
#include "lockstep/dist/shm/internal/room.h"

namespace lockstep::dist::shm {

/// A room for all ranks; `options` without the processes.
/// Errors: kUnavailable, on all ranks alike; those of `exchange`.
Result<std::unique_ptr<Room>> open_room(
    const internal::ExchangeTexts& exchange,
    RoomOptions options);

} // namespace lockstep::dist::shm
