// SPDX-License-Identifier: BSD-3-Clause
//
// What a caller of a recorded collective waits for.
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "lockstep/distributed/watch/flight_recorder.h"

namespace lockstep::dist::internal {

/// `inner` with its end noted, and its error told as ours. Ends before `inner`
/// if the recorder's watch finds that it cannot end any more.
c10::intrusive_ptr<c10d::Work> recorded_work(
    c10::intrusive_ptr<c10d::Work> inner,
    std::shared_ptr<Flight> flight,
    const std::shared_ptr<FlightRecorder>& recorder);

} // namespace lockstep::dist::internal
