// SPDX-License-Identifier: BSD-3-Clause
//
// What a run measures, and the interface of whoever shows or keeps it. Epochs
// count from 1: a row's epoch is the `epoch` of the checkpoint behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/metrics/metric.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

/// How long something took. Units: seconds.
struct Times {
  double wall = 0.0;
  /// Of the processors, over all threads: in the program, and in the system for
  /// it.
  double user = 0.0;
  double system = 0.0;
};

/// What a metric says.
struct MetricValue {
  /// As the metric calls it: "top1".
  std::string name = {};
  /// NaN where nothing was counted.
  double value = 0.0;
};

/// The value of that name; none if there is none, or nothing was counted.
std::optional<double> find_metric(
    std::span<const MetricValue> values,
    std::string_view name);

/// A data set's loss, and what the task's metrics say of it.
struct Score {
  double loss = 0.0;
  /// In the metrics' order. Those of the training are the first metric's.
  std::vector<MetricValue> metrics = {};
  /// Of a test: what the metrics say of classes or values one by one.
  std::vector<MetricTable> tables = {};
  /// Of this start of the program: an epoch that was interrupted counts from
  /// where it went on.
  double seconds = 0.0;

  [[nodiscard]] std::optional<double> metric(std::string_view name) const {
    return find_metric(metrics, name);
  }
};

/// By what the best epoch is chosen.
struct BestBy {
  /// Of results.csv: "val_top1", "val_miou", "val_loss", "train_loss".
  std::string column = "val_loss";
  Better better = Better::kLower;

  friend bool operator==(const BestBy&, const BestBy&) = default;
};

/// True for "val_top1", which scripts of Python call `best_acc1`.
bool is_accuracy(const BestBy& by);

/// "best Acc@1 87.31", "best val_loss 0.25"; "no best epoch" of none.
std::string best_text(const BestBy& by, std::optional<double> best);

/// What a run is trained and tested on.
struct DataRecord {
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
  /// Of one sample, as the model sees it.
  std::vector<std::int64_t> sample_shape = {};
  /// 0: targets are no classes.
  std::int64_t num_classes = 0;
  /// `Dataset::digest`; 0: not known.
  std::uint64_t train_digest = 0;
  std::uint64_t test_digest = 0;
};

/// How a run begins, or goes on.
struct StartRecord {
  /// The run folder; empty on ranks that do not write.
  std::string folder = {};
  /// This process among those of the run.
  int rank = 0;
  int ranks = 1;
  BestBy best_by = {};
  /// What the task measures, in training (the first metric's) and in a test.
  std::vector<MetricInfo> train_metrics = {};
  std::vector<MetricInfo> test_metrics = {};
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
  DataRecord data = {};
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
  /// Of the batch: what the first metric says.
  std::vector<MetricValue> metrics = {};
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

/// Where the time of an epoch went, as this process saw it: an accelerator
/// works on while the process goes on. Units: seconds.
struct PhaseTimes {
  /// Waiting for batches.
  double data = 0.0;
  /// Forward and loss.
  double forward = 0.0;
  /// With the sum of the gradients over replicas and ranks.
  double backward = 0.0;
  /// Optimizer, schedule and hooks.
  double update = 0.0;
  /// Waiting for the numbers of steps, and their exchange between ranks.
  double read = 0.0;
  double test = 0.0;
  /// Copies for checkpoints inside the epoch.
  double save = 0.0;
};

/// One sample of the test, for people.
struct SampleRecord {
  std::string name = {};
  /// In words; empty for masks.
  std::string target = {};
  std::string output = {};
  /// Of classes: whether they are the same.
  std::optional<bool> is_right = {};
  /// A PNG file: the sample, and of masks beside it the target and the output;
  /// empty for samples that are no images.
  std::string png = {};
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
  BestBy best_by = {};
  /// The rate of the epoch's last step.
  double lr = 0.0;
  /// Of training, without the test.
  double images_per_second = 0.0;
  /// Of the whole epoch, its test included.
  Times times = {};
  PhaseTimes phases = {};
  /// The most that each rank's process had since it started, and each device of
  /// this process; 0: not known. Units: bytes.
  std::vector<double> rank_bytes = {};
  std::vector<double> device_bytes = {};
  /// A few of the test, evenly spread; on the rank that writes.
  std::vector<SampleRecord> shown = {};

  /// Of a column of results.csv that is a loss or a metric: "val_top1"; none if
  /// it was not measured.
  [[nodiscard]] std::optional<double> value(std::string_view column) const;
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
  /// Of `StartRecord::best_by`; none before the first best epoch.
  std::optional<double> best = {};
  Times times = {};
  bool was_stopped = false;
  /// Why it ended before its last epoch; empty otherwise.
  std::string why = {};
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
  /// The run ends with this error instead, which is thrown when all are told.
  virtual void on_failure(const Error& /*error*/) {}

  /// True for one that changes nothing of the training. Weights that others
  /// write past LibTorch's version counters (`p.data()`) are seen, too, for
  /// which all are sent to all devices in every step.
  [[nodiscard]] virtual bool only_looks() const {
    return false;
  }
};

using Observers = std::vector<std::shared_ptr<Observer>>;

} // namespace lockstep::train
#pragma GCC visibility pop
