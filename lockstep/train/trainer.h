// SPDX-License-Identifier: BSD-3-Clause
//
// Trains a model as a TrainConfig says and keeps a run folder.
//   Trainer trainer(config, {.log = &console});
//   TrainResult result = trainer.run();
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/data/loader.h"
#include "lockstep/models/model.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/train/checkpointer.h"
#include "lockstep/train/config.h"
#include "lockstep/train/evaluate.h"
#include "lockstep/train/run_folder.h"
#include "lockstep/train/schedule.h"
#include "lockstep/train/sink.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {

/// What a trainer needs from the program around it. Ownership: borrowed.
struct TrainerOptions {
  FileSystem* fs = &real_fs();
  /// Receives messages; none: silence.
  LogSink* log = nullptr;
  /// Shown every step and epoch, after the run folder's own files.
  std::vector<std::shared_ptr<Sink>> sinks = {};
  /// Asked after every step; true ends the run after it.
  std::function<bool()> should_stop = [] { return false; };
};

/// How a run ended.
struct TrainResult {
  /// Where the files are; empty for a test without a run.
  std::string folder = {};
  /// Epochs done in all, earlier starts included.
  std::int64_t epochs = 0;
  /// The last test.
  Score test = {};
  /// Units: percent.
  double best_acc1 = 0.0;
  /// True if `should_stop` ended it.
  bool was_stopped = false;
  /// True if `folder` holds a checkpoint to go on from.
  bool has_checkpoint = false;
};

/// Owns everything a run needs. Threads: construct and run on one thread.
class Trainer {
 public:
  /// Opens the data, builds the model with `config.seed`, and takes over a
  /// checkpoint if `config.resume` names one.
  /// Errors: throws what the parts throw, before a run folder is made.
  explicit Trainer(TrainConfig config, TrainerOptions options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains up to `config.epochs`, or tests only. Once per trainer.
  /// Errors: throws kIo if the run folder or the last checkpoint cannot be
  /// written; an earlier checkpoint that fails is a warning.
  TrainResult run();

 private:
  void open_data();
  void build();
  void resume();
  void open_run_folder();
  void describe() const;
  void train_all();
  Score train_epoch();
  StepRecord train_step(const Batch& batch, Scoring& scoring);
  void finish_epoch(const Score& train);
  void save(bool is_best);
  void log(LogLevel level, std::string_view message) const;

  TrainConfig config_;
  TrainerOptions options_;
  std::vector<c10::Device> devices_;
  std::unique_ptr<Loader> train_data_;
  std::unique_ptr<Loader> test_data_;
  std::int64_t train_samples_ = 0;
  std::int64_t test_samples_ = 0;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  /// Where `--resume` found its checkpoint; empty without.
  std::string resumed_from_;
  RunFolder folder_;
  std::unique_ptr<LogSink> log_file_;
  double last_lr_ = 0.0;
  /// What is returned, kept up to date: `epochs` is also the next to do.
  TrainResult result_;
};

} // namespace lockstep::train
