// SPDX-License-Identifier: BSD-3-Clause
//
// Trains a model as a TrainConfig says and keeps a run folder.
//   Trainer trainer(config, {.own = {.model = net, .train_data = images}});
//   TrainResult result = trainer.run();
//
// The parts of a run that settings name, as the command line has them:
//   Trainer trainer(config, {.own = named_parts(config)});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/own_parts.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/state_part.h"
#include "lockstep/train/step_hook.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

class TrainingRun;

/// What a trainer needs from the program around it. Ownership: pointers are
/// borrowed.
struct TrainerOptions {
  FileSystem* fs = &real_fs();
  /// The ranks that train one model together: each its share of every batch, on
  /// one of the devices that are named, as its `place` says; rank 0 writes. Not
  /// given: those of the job (`job_group`, which waits for all ranks that a
  /// launcher has started). `{}`: this process trains a run of its own, and
  /// needs a folder of its own.
  dist::ProcessGroup group = dist::job_group();
  /// Receives messages, on the rank that writes, beside the run's log.txt;
  /// none: silence.
  LogSink* log = nullptr;
  /// Told every step and epoch, on every rank, and every checkpoint, on the
  /// rank that writes it: after the run folder's own files.
  Observers observers = {};
  /// Asked after every step; true saves a checkpoint and ends the run. An
  /// accelerator has begun the next step by then, and ends it first.
  std::function<bool()> should_stop = [] { return false; };
  /// What the run consists of.
  OwnParts own = {};
  /// Called around each update, after those that the settings ask for.
  StepHooks hooks = {};
  /// State of the program's own that checkpoints shall hold.
  std::vector<StatePart> parts = {};
  /// What `find_resumption` found for the settings, if it was asked already.
  std::optional<Resumption> resumption = {};
  /// Where settings come from, for what is said of those that differ from a
  /// checkpoint's.
  SettingSources sources = {};
};

/// Shows on stderr what a run consists of, and its warnings:
/// `{.log = &console_log()}`. Threads: any.
LogSink& console_log();

/// Shows every `log_interval`-th step and every epoch there, in the lines of
/// log.txt: `{.observers = {console_lines()}}`. On other ranks than 0 of a job
/// nothing.
std::shared_ptr<Observer> console_lines(
    std::int64_t log_interval = TrainConfig().log_interval);

/// For `should_stop`: true from the first Ctrl-C or SIGTERM on, so that the run
/// saves and ends; a second one ends the program at once. While such a function
/// lives, these signals are its own. Threads: any.
std::function<bool()> stop_on_signals();

/// How a run ended.
struct TrainResult {
  /// Where the files are; empty for a test without a run.
  std::string folder = {};
  /// Epochs and steps done in all, earlier starts included.
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  /// The last test; none in a run without one.
  std::optional<Score> test = {};
  /// By what the best epoch was chosen, and its number; none before the first.
  BestBy best_by = {};
  std::optional<double> best = {};
  /// True if `should_stop` ended it.
  bool was_stopped = false;
  /// True if `folder` holds a checkpoint to go on from.
  bool has_checkpoint = false;
};

/// Something that the user should know when the run starts.
struct StartLine {
  LogLevel level = LogLevel::kInfo;
  std::string text = {};
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
  ~Trainer();
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
  [[nodiscard]] const TrainConfig& config() const;

 private:
  std::unique_ptr<TrainingRun> run_;
};

/// `given`, with the data sets of `settings.data` if it has no data, and with
/// the model of `settings.model` and the weights of `settings.seed` if it has
/// none. Random numbers go on from that seed then, on each rank of `group` from
/// another one. Threads and kernels are set as the trainer sets them.
/// Errors: throws as `checked_flags`, `open_dataset`, `make_model`,
/// `fit_images` and `choose_devices`.
OwnParts named_parts(
    const TrainConfig& settings,
    OwnParts given = {},
    const dist::ProcessGroup& group = dist::job_group());

/// The data sets of `settings.data` alone, for a model that is there already.
/// Errors: throws as `checked_flags` and `open_dataset`.
OwnParts named_data(const TrainConfig& settings);

} // namespace lockstep::train
#pragma GCC visibility pop
