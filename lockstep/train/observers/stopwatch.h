// SPDX-License-Identifier: BSD-3-Clause
//
// Wall-clock and processor time, as Python's `%%time` shows them.
//   const Stopwatch watch;
//   ...
//   to_string(watch.times())   // "0:21:33 (user 0:40:11, system 0:00:22)"
#pragma once

#include <chrono>
#include <string>

#include "lockstep/distributed/process_group.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// Runs from its construction on.
class Stopwatch {
 public:
  Stopwatch();

  /// Units: seconds.
  [[nodiscard]] double seconds() const;
  /// The processor's share is that of all threads of the process.
  [[nodiscard]] Times times() const;

 private:
  std::chrono::steady_clock::time_point start_;
  Times cpu_start_;
};

/// The same wall-clock time, and the processor time of all ranks together.
/// Every rank calls it.
Times of_all_ranks(const Times& own, const dist::ProcessGroup& group);

/// "0:21:33 (user 0:40:11, system 0:00:22)".
std::string to_string(const Times& times);

} // namespace lockstep::train
