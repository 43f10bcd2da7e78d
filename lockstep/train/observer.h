// SPDX-License-Identifier: BSD-3-Clause
//
// What a run measures, and the interface of whoever shows or keeps it. Epochs
// count from 1: a row's epoch is the `epoch` of the checkpoint behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/settings/run_names.h"

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
  /// Units: percent; none with a loss of the program's own, whose targets need
  /// not be classes (`OwnParts::classifies`).
  std::optional<double> top1 = {};
  std::optional<double> top5 = {};
  /// Of this start of the program: an epoch that was interrupted counts from
  /// where it went on.
  double seconds = 0.0;
};

/// By what the best epoch is chosen: the highest accuracy or the lowest loss of
/// the test, or, in a run without a test, the lowest loss of the training.
enum class BestBy { kAccuracy, kTestLoss, kTrainLoss };

/// Its column of results.csv: "val_top1", "val_loss", "train_loss".
constexpr std::string_view best_column(BestBy by) {
  return by == BestBy::kAccuracy   ? kTestAccuracyColumn
         : by == BestBy::kTestLoss ? kTestLossColumn
                                   : kTrainLossColumn;
}

/// How a run begins, or goes on.
struct StartRecord {
  /// The run folder; empty on ranks that do not write.
  std::string folder = {};
  /// This process among those of the run.
  int rank = 0;
  int ranks = 1;
  BestBy best_by = BestBy::kAccuracy;
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
  /// Units: percent of the batch; none: as `Score`.
  std::optional<double> top1 = {};
  std::optional<double> top5 = {};
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
  /// None in a run without test data.
  std::optional<Score> test = {};
  /// Whether it is the best one so far, and by what.
  bool is_best = false;
  BestBy best_by = BestBy::kAccuracy;
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
  /// Units: percent; 0 before the first best epoch, none if another number
  /// chooses the best.
  std::optional<double> best_acc1 = {};
  /// The lowest loss; none before the first best epoch, and where the accuracy
  /// chooses.
  std::optional<double> best_loss = {};
  Times times = {};
  bool was_stopped = false;
};

/// Receives what a run measures; overrides what it wants to know. Numbers are
/// those of all ranks together. Observers of a program are told on every rank,
/// but of checkpoints on the one that writes them (rank 0).
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
