// SPDX-License-Identifier: BSD-3-Clause
//
// The loop behind a `Trainer`.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/loop/cursor.h"
#include "lockstep/train/loop/loss_watch.h"
#include "lockstep/train/loop/micro_batches.h"
#include "lockstep/train/loop/run_identity.h"
#include "lockstep/train/loop/run_start.h"
#include "lockstep/train/loop/setup.h"
#include "lockstep/train/loop/start_lines.h"
#include "lockstep/train/loop/step_profile.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/observers/run_outputs.h"
#include "lockstep/train/observers/stopwatch.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/state_part.h"
#include "lockstep/train/step/test_samples.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {

/// Owns everything a run needs; see `Trainer` for the functions.
class TrainingRun {
 public:
  TrainingRun(const RunStart& start, const TrainerOptions& options);
  ~TrainingRun() = default;
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  TrainResult run();
  [[nodiscard]] std::vector<StartLine> plan() const;
  [[nodiscard]] const TrainConfig& config() const {
    return config_;
  }

 private:
  /// A step that is queued, and what is known of it.
  struct Running {
    StepRecord record;
    /// Of each batch.
    std::vector<StepResult> results = {};
    /// An accelerator may read their memory until the results are there.
    std::vector<Batch> batches = {};
  };

  TrainResult run_to_end();
  void list_state(const std::vector<StatePart>& parts);
  // How it goes on: training_run_resume.cpp.
  void resume(const RunStart& start);
  void load(const Resumption& from, const RunStart& start);
  void check(const Resumption& from);
  [[nodiscard]] StartingRun starting() const {
    return {config_, setup_, own_, from_, cursor_, identity_};
  }
  void log(const std::vector<StartLine>& lines);
  void open_outputs();
  void train_all();
  void train_epoch();
  /// `part`: which of a step's batches.
  [[nodiscard]] Batch mixed(const Batch& batch, std::int64_t part) const;
  void forget_tests();
  [[nodiscard]] std::vector<double> shares_of(
      const std::vector<Batch>& batches) const;
  Batch next_batch(std::int64_t part);
  void train_batch(
      Running& running,
      const Batch& batch,
      double weight,
      bool is_last);
  void read_batches(Running& running);
  void train_batches(Running& running);
  bool repeats_step(Running& running, const std::exception_ptr& error);
  [[nodiscard]] std::string place_of(const Batch& batch, const Running& running)
      const;
  void update();
  void train_step(const StepRecord& begun);
  void finish_step();
  void finish_epoch(std::int64_t samples);
  void write_profile();
  void save(bool is_best);
  [[nodiscard]] std::optional<Score> test();
  /// Of all ranks, which all call it.
  void add_costs(EpochRecord& record);
  [[nodiscard]] bool is_epoch_done() const;
  [[nodiscard]] StepScope scope() const;
  [[nodiscard]] bool is_done();
  [[nodiscard]] const Task& task() const {
    return setup_.strategy->task();
  }

  const TrainConfig config_;
  /// As the run folder says.
  const TrainConfig written_;
  /// Where the run goes on; nothing if it begins.
  const std::optional<ResumePoint> from_;
  FileSystem& fs_;
  const dist::ProcessGroup group_;
  const OwnParts own_;
  const std::function<bool()> should_stop_;
  Setup setup_;
  MicroBatches micro_batches_;
  RunIdentity identity_;
  RunOutputs outputs_;
  LossWatch loss_watch_;
  Cursor cursor_;
  RunState state_;
  /// Of the epoch that runs.
  Stopwatch epoch_watch_;
  /// Since the last step was done, or whatever came after it.
  Stopwatch step_watch_;
  /// Of the epoch that runs, as far as it is known.
  PhaseTimes phases_ = {};
  /// On the rank that writes, in a run with a test.
  std::optional<TestSamples> test_samples_;
  StepProfile profile_{config_.profile, group_};
  std::vector<SampleRecord> shown_ = {};
  std::optional<Running> running_;
  bool runs_ahead_ = false;
  /// Where the newest checkpoint was taken, so that none is taken twice.
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t step = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::optional<Place> saved_;
  bool has_run_ = false;
  /// Why there are no more epochs, before the last one that was asked for.
  std::string why_done_;
  /// What is returned, as far as it is known.
  TrainResult result_;
};

} // namespace lockstep::train
