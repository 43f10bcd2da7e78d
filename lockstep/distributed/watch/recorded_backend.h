// SPDX-License-Identifier: BSD-3-Clause
//
// A backend whose collectives are noted, and whose errors say which rank is to
// blame. What goes over the wire stays as it is.
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/distributed/watch/flight_recorder.h"

namespace lockstep::dist::internal {

/// `inner`, with its collectives noted as those of `group`. An error of the
/// wire becomes `FlightRecorder::failure`; `inner->abort()` is called then, so
/// that nothing else waits. Errors in arguments stay as they are.
c10::intrusive_ptr<c10d::Backend> recorded(
    const c10::intrusive_ptr<c10d::Backend>& inner,
    const std::shared_ptr<FlightRecorder>& recorder,
    const FlightGroup& group);

} // namespace lockstep::dist::internal
