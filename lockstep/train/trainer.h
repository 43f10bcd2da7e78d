// SPDX-License-Identifier: BSD-3-Clause
//
// Trains a model as a TrainConfig says and keeps a run folder.
//   Trainer trainer(config, {.own = {.model = net, .train_data = images}});
//   TrainResult result = trainer.run();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/train/cursor.h"
#include "lockstep/train/loss_watch.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run_identity.h"
#include "lockstep/train/run_outputs.h"
#include "lockstep/train/run_start.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/start_lines.h"
#include "lockstep/train/state_part.h"
#include "lockstep/train/stopwatch.h"
#include "lockstep/train/trainer_options.h"

namespace lockstep::train {

/// How a run ended.
struct TrainResult {
  /// Where the files are; empty for a test without a run.
  std::string folder = {};
  /// Epochs and steps done in all, earlier starts included.
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  /// The last test; none in a run without one.
  std::optional<Score> test = {};
  /// As `EndRecord`.
  std::optional<double> best_acc1 = {};
  std::optional<double> best_loss = {};
  /// True if `should_stop` ended it.
  bool was_stopped = false;
  /// True if `folder` holds a checkpoint to go on from.
  bool has_checkpoint = false;
};

/// Owns everything a run needs. Threads: construct and run on one thread. Runs
/// share the process's generators: of two trainers, construct and run one after
/// the other.
class Trainer {
 public:
  /// Trains the parts of `options.own`, and takes over a checkpoint if
  /// `config.resume` names one.
  /// Errors: throws what the parts throw, before a run folder is made; with
  /// `config.resume_exact` kMismatch for whatever could change the bits.
  explicit Trainer(TrainConfig config, const TrainerOptions& options = {});
  ~Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains up to `config.epochs`, or tests only. Once per trainer.
  /// Errors: throws kIo if the run folder or the last checkpoint cannot be
  /// written; an earlier checkpoint that fails is a warning.
  TrainResult run();

  /// What `run` would say when it starts, and how long it would be. Writes
  /// nothing.
  [[nodiscard]] std::vector<StartLine> plan() const;
  /// The settings as they will be used; parts of the program are called "own:"
  /// and their class.
  [[nodiscard]] const TrainConfig& config() const {
    return config_;
  }

 private:
  Trainer(const RunStart& start, const TrainerOptions& options);
  void list_state(const std::vector<StatePart>& parts);
  // How it goes on: trainer_resume.cpp.
  void resume(const RunStart& start);
  void load(const Resumption& from, const RunStart& start);
  void check(const Resumption& from);
  [[nodiscard]] StartingRun starting() const {
    return {config_, setup_, own_, from_, cursor_};
  }
  void log(const std::vector<StartLine>& lines);
  void open_outputs();
  void train_all();
  void train_epoch();
  std::optional<Batch> next_batch();
  void train_step(const Batch& batch, StepRecord record);
  void finish_step();
  void finish_epoch(std::int64_t samples);
  void save(bool is_best);
  [[nodiscard]] std::optional<Score> test();
  [[nodiscard]] bool is_epoch_done() const;

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
  RunIdentity identity_;
  RunOutputs outputs_;
  LossWatch loss_watch_;
  Cursor cursor_;
  RunState state_;
  /// Of the epoch that runs.
  Stopwatch epoch_watch_;
  /// Since the last step was done, or whatever came after it.
  Stopwatch step_watch_;
  /// A step that is queued, and what is known of it.
  struct Running {
    StepRecord record;
    StepResult result;
  };
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
  /// What is returned, as far as it is known.
  TrainResult result_;
};

} // namespace lockstep::train
