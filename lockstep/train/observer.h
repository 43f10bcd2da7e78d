// SPDX-License-Identifier: BSD-3-Clause
//
// What a run measures, and the interface of whoever shows or keeps it. Epochs
// count from 1: a row's epoch is the `epoch` of the checkpoint behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// How long something took. Units: seconds.
struct Times {
  double wall = 0.0;
  /// Of the processors, over all threads: in the program, and in the system for
  /// it.
  double user = 0.0;
  double system = 0.0;
};

/// Averages over a data set.
struct Score {
  double loss = 0.0;
  /// Units: percent.
  double top1 = 0.0;
  double top5 = 0.0;
  /// Of this start of the program: an epoch that was interrupted counts from
  /// where it went on.
  double seconds = 0.0;
};

/// How a run begins, or goes on.
struct StartRecord {
  /// The run folder.
  std::string folder = {};
  /// "cpu", "cuda:0", once for every replica.
  std::vector<std::string> devices = {};
  /// The epoch that begins or goes on, of how many.
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;
  /// Steps that are done.
  std::int64_t step = 0;
  /// Of the epoch that goes on: its samples so far, and their averages.
  std::int64_t samples = 0;
  Score train = {};
};

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
  /// From the end of the step before to that of this one, and the wait for its
  /// data. An accelerator has the next step queued by then: the wait was before
  /// the end of the step before.
  double seconds = 0.0;
  double data_seconds = 0.0;
  /// Since the epoch began, or went on. Units: seconds.
  double epoch_seconds = 0.0;

  /// True for the epoch's first, every `interval`-th and its last step.
  [[nodiscard]] bool is_logged(std::int64_t interval) const {
    return batch % interval == 0 || batch + 1 == batches;
  }
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
  /// Of training, without the test.
  double images_per_second = 0.0;
  /// Of the whole epoch, its test included.
  Times times = {};
};

/// A checkpoint that is complete and on the disk.
struct CheckpointRecord {
  std::string path = {};
  /// Epochs and steps that are done.
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  bool is_best = false;
};

/// How a run ended.
struct EndRecord {
  /// That are done.
  std::int64_t epochs = 0;
  /// Units: percent.
  double best_acc1 = 0.0;
  Times times = {};
  bool was_stopped = false;
};

/// Receives what a run measures; overrides what it wants to know.
/// Threads: called by the training thread only.
class Observer {
 public:
  Observer() = default;
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  virtual void on_start(const StartRecord& /*record*/) {}
  virtual void on_step(const StepRecord& /*record*/) {}
  virtual void on_epoch(const EpochRecord& /*record*/) {}
  virtual void on_checkpoint(const CheckpointRecord& /*record*/) {}
  virtual void on_end(const EndRecord& /*record*/) {}
};

using Observers = std::vector<std::shared_ptr<Observer>>;

} // namespace lockstep::train
