// SPDX-License-Identifier: BSD-3-Clause
//
// Steps as a progress bar, one per epoch, for a terminal.
#pragma once

#include <memory>

#include "lockstep/report/console.h"
#include "lockstep/report/progress_line.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// Draws on a console that log lines share. Ownership: `console` must outlive
/// the observer.
class BarObserver final : public Observer {
 public:
  explicit BarObserver(report::Console& console) : console_(console) {}

  void on_start(const StartRecord& record) override;
  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;
  void on_end(const EndRecord& record) override;
  [[nodiscard]] bool only_looks() const override {
    return true;
  }

 private:
  report::Console& console_;
  std::unique_ptr<report::ProgressLine> line_;
  /// The epoch that `line_` shows, which may begin in its middle.
  std::int64_t epoch_ = -1;
  std::int64_t epochs_ = 0;
  /// Of this start, for the rate.
  std::int64_t samples_ = 0;
  /// Sums over the epoch so far, and the samples in them.
  double counted_ = 0.0;
  double loss_ = 0.0;
  double right_ = 0.0;
};

} // namespace lockstep::train
