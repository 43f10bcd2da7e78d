// SPDX-License-Identifier: BSD-3-Clause
//
// What a run measures, and the interface of whoever shows or keeps it.
#pragma once

#include <cstdint>

namespace lockstep::train {

/// One optimizer step.
struct StepRecord {
  std::int64_t epoch = 0;
  /// Steps done since the run began, this one included.
  std::int64_t step = 0;
  /// Position in the epoch, from 0, and the epoch's length.
  std::int64_t batch = 0;
  std::int64_t batches = 0;
  std::int64_t samples = 0;
  float loss = 0.0F;
  /// Units: percent of the batch.
  double top1 = 0.0;
  double top5 = 0.0;
  /// The rate this step was made with.
  double lr = 0.0;
  /// The whole step, and its wait for data.
  double seconds = 0.0;
  double data_seconds = 0.0;

  /// True for the epoch's first, every `interval`-th and its last step.
  [[nodiscard]] bool is_logged(std::int64_t interval) const {
    return batch % interval == 0 || batch + 1 == batches;
  }
};

/// Averages over a data set.
struct Score {
  double loss = 0.0;
  /// Units: percent.
  double top1 = 0.0;
  double top5 = 0.0;
  double seconds = 0.0;
};

/// One epoch with its test.
struct EpochRecord {
  std::int64_t epoch = 0;
  /// Steps and samples since the run began.
  std::int64_t step = 0;
  std::int64_t samples = 0;
  Score train = {};
  Score test = {};
  /// The rate of the epoch's last step.
  double lr = 0.0;
  double images_per_second = 0.0;
};

/// Receives what a run measures. Threads: called by the training thread only.
class Sink {
 public:
  Sink() = default;
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  virtual void on_step(const StepRecord& record) = 0;
  virtual void on_epoch(const EpochRecord& record) = 0;
};

} // namespace lockstep::train
