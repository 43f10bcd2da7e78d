// SPDX-License-Identifier: BSD-3-Clause
//
// Trains a model as a TrainConfig says and keeps a run folder.
//   Trainer trainer(config, {.log = &console});
//   TrainResult result = trainer.run();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/base/world.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/world.h"
#include "lockstep/train/cursor.h"
#include "lockstep/train/loss_watch.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run_identity.h"
#include "lockstep/train/run_outputs.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/settings/sources.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/start_lines.h"
#include "lockstep/train/state_part.h"
#include "lockstep/train/stopwatch.h"

namespace lockstep::train {

/// What a trainer needs from the program around it. Ownership: pointers are
/// borrowed.
struct TrainerOptions {
  FileSystem* fs = &real_fs();
  /// Of processes without a `group`.
  World* world = &world_of_one();
  /// Ranks that train one model together: `world` is theirs then. Each is on
  /// one of the devices that are named, as its `place` on the machine says. See
  /// `joins_job` for where there is none.
  dist::ProcessGroup group = {};
  /// None: as the launcher says.
  std::optional<RankInfo> place = {};
  /// Without a `group` and a `world`: the trainer takes the default group of
  /// several ranks, or makes it (`init_process_group`, which waits for all
  /// ranks) if a launcher has started several processes, so that they train one
  /// model, each its share of every batch, and one of them writes. Off: each
  /// process trains a run of its own, and needs a folder of its own.
  bool joins_job = true;
  /// Receives messages, on the rank that writes; none: silence.
  LogSink* log = nullptr;
  /// Told every step and epoch, on every rank, and every checkpoint, on the
  /// rank that writes it: after the run folder's own files.
  Observers observers = {};
  /// Asked after every step; true saves a checkpoint and ends the run. An
  /// accelerator has begun the next step by then, and ends it first.
  std::function<bool()> should_stop = [] { return false; };
  /// A model, data sets and a loss of the program's own.
  OwnParts own = {};
  /// State of the program's own that checkpoints shall hold.
  std::vector<StatePart> parts = {};
  /// What `find_resumption` found for `config`, if it was asked already.
  std::optional<Resumption> resumption = {};
  /// Where settings come from, for what is said of those that differ from a
  /// checkpoint's.
  SettingSources sources = {};
};

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
  /// Opens the data, builds the model with `config.seed`, and takes over a
  /// checkpoint if `config.resume` names one.
  /// Errors: throws what the parts throw, before a run folder is made; with
  /// `config.resume_exact` kMismatch for whatever could change the bits.
  explicit Trainer(TrainConfig config, TrainerOptions options = {});
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
  void take_groups();
  void list_state();
  // How it goes on: trainer_resume.cpp.
  TrainConfig config_to_set_up();
  void resume();
  void check(const Resumption& from);
  void take_settings(const ckpt::Value& saved);
  [[nodiscard]] StartingRun starting() const {
    return {config_, setup_, options_.own, options_.resumption, cursor_};
  }
  void log(const std::vector<StartLine>& lines);
  /// What the run goes on from; null if it begins.
  Resumption* checkpoint() {
    const bool is_there =
        options_.resumption && !options_.resumption->path.empty();
    return is_there ? &*options_.resumption : nullptr;
  }
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

  TrainConfig config_;
  /// Of `options_.group`.
  std::optional<dist::GroupWorld> group_world_;
  TrainerOptions options_;
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
