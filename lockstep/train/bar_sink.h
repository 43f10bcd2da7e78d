// SPDX-License-Identifier: BSD-3-Clause
//
// Steps as a progress bar, one per epoch, for a terminal.
#pragma once

#include <memory>

#include "lockstep/report/console.h"
#include "lockstep/report/progress_line.h"
#include "lockstep/train/sink.h"

namespace lockstep::train {

/// Draws on a console that log lines share. Ownership: `console` must outlive
/// the sink.
class BarSink : public Sink {
 public:
  explicit BarSink(report::Console& console) : console_(console) {}

  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;

 private:
  report::Console& console_;
  std::unique_ptr<report::ProgressLine> line_;
  /// Sums over the epoch so far.
  std::int64_t samples_ = 0;
  double loss_ = 0.0;
  double right_ = 0.0;
};

} // namespace lockstep::train
