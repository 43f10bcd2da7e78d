// SPDX-License-Identifier: BSD-3-Clause
//
// `--profile N`: what replicas and ranks do in N steps of a run, as a file for
// trace viewers (ui.perfetto.dev, chrome://tracing).
//   StepProfile profile(config.profile, group);
//   profile.begin_step();  ...  profile.end_step();
//   if (profile.is_due()) { write(profile.take().text); }
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/distributed/process_group.h"
#include "lockstep/tensor/internal/trace_spans.h"

namespace lockstep::train {

/// Every rank makes the same calls. Threads: one at a time.
class StepProfile {
 public:
  struct Trace {
    /// Chrome's trace event format, as torch.profiler writes it: a process for
    /// each rank, a thread for each lane. On rank 0; empty if nothing was
    /// recorded.
    std::string text = {};
    /// That it shows.
    std::int64_t steps = 0;
    /// Ranks whose process was recording another trace: they are missing.
    std::int64_t missing_ranks = 0;
  };

  /// Steps of a start that are left out: what they wait for happens once.
  static constexpr std::int64_t kWarmUp = 3;

  /// 0 steps: it does nothing.
  StepProfile(std::int64_t steps, dist::ProcessGroup group);

  void begin_step();
  void end_step();
  /// All steps have been made, and nothing was taken.
  [[nodiscard]] bool is_due() const {
    return wanted_ > 0 && done_ >= kWarmUp + wanted_;
  }
  /// Nothing was taken, perhaps as the run had fewer steps.
  [[nodiscard]] bool is_wanted() const {
    return wanted_ > 0;
  }
  /// Of the steps that were made. Nothing is recorded from now on.
  Trace take();

 private:
  std::int64_t wanted_;
  std::int64_t done_ = 0;
  dist::ProcessGroup group_;
  std::unique_ptr<TraceRecorder> recorder_;
};

} // namespace lockstep::train
