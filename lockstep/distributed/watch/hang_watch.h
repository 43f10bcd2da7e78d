// SPDX-License-Identifier: BSD-3-Clause
//
// The thread that looks after the collectives of a rank: it says which rank the
// others wait for, and ends a collective that cannot end by itself any more.
#pragma once

#include <memory>
#include <thread>

#include "lockstep/base/internal/descriptor.h"
#include "lockstep/distributed/watch/flight_recorder.h"

namespace lockstep::dist::internal {

/// Sleeps while collectives end soon; wakes once a second, and when a process
/// of the job ends. A warning comes after 5 s in one collective, and each time
/// that it has lasted twice as long.
class HangWatch {
 public:
  explicit HangWatch(std::shared_ptr<FlightRecorder> recorder);
  /// Returns within two seconds, even if the store does not answer the thread.
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

 private:
  Descriptor stop_;
  std::jthread thread_;
};

} // namespace lockstep::dist::internal
