// SPDX-License-Identifier: BSD-3-Clause
//
// Steps and epochs as the lines of torchvision's reference scripts, so that
// their log parsers keep working.
//   Epoch: [1]  [ 50/938]  eta: 0:01:02  lr: 0.1  img/s: 1843.2  loss: ...
//   Test:  Acc@1 87.310 Acc@5 99.480
// `img/s` is the rate since the line before; "-" where only one step came
// since, as in the first line of an epoch: it tells how the data began, not the
// rate.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/log_sink.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/observers/meter.h"

namespace lockstep::train {

/// Whether a line of a log is one that a `LineObserver` writes.
bool is_observed_line(std::string_view line);

/// "Acc@1 87.310 Acc@5 99.480", "miou 0.713 dice 0.82".
std::string metrics_text(std::span<const MetricValue> metrics);

/// "Test:  Acc@1 87.310 Acc@5 99.480", "Test:  miou 0.713 dice 0.82"; "Test:
/// loss 0.25" without metrics.
std::string test_text(const Score& test);

/// Writes a line for every logged step, two for every epoch (one without a
/// test) and one at the end.
/// Ownership: `log` must outlive the observer.
class LineObserver final : public Observer {
 public:
  LineObserver(LogSink& log, std::int64_t log_interval);

  void on_start(const StartRecord& record) override;
  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;
  void on_end(const EndRecord& record) override;
  [[nodiscard]] bool only_looks() const override {
    return true;
  }

 private:
  /// Images per second since the last line.
  [[nodiscard]] std::string rate(double epoch_seconds) const;

  /// What the lines of one epoch average.
  struct Meters {
    Meter loss;
    /// By the metrics' names.
    std::vector<std::pair<std::string, Meter>> metrics;
    Meter time;
    Meter data;

    void add(const std::vector<MetricValue>& values, std::int64_t samples);
    /// "acc1: 25.0000 (24.1200)  ".
    [[nodiscard]] std::string metrics_text() const;
  };

  LogSink& log_;
  std::int64_t log_interval_;
  Meters meters_;
  /// The epoch of `meters_`, which may begin in its middle.
  std::int64_t epoch_ = -1;
  /// Steps and samples since the last line, and when that was in the epoch.
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
  double shown_ = 0.0;
};

} // namespace lockstep::train
