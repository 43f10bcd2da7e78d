// SPDX-License-Identifier: BSD-3-Clause
//
// Short runs on a few hundred images of FashionMNIST, one scratch folder per
// test.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/trainer.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::train {

/// Keeps what it is told.
class RecordingLog : public LogSink {
 public:
  void write(LogLevel level, std::string_view message) override {
    lines[level].emplace_back(message);
  }
  std::map<LogLevel, std::vector<std::string>> lines = {};
};

class RecordingObserver : public Observer {
 public:
  void on_checkpoint(const CheckpointRecord& record) override {
    checkpoints.push_back(record);
  }
  void on_step(const StepRecord& record) override {
    steps.push_back(record);
  }
  void on_epoch(const EpochRecord& record) override {
    epochs.push_back(record);
  }
  [[nodiscard]] std::vector<float> losses() const {
    std::vector<float> values;
    values.reserve(steps.size());
    for (const StepRecord& step : steps) {
      values.push_back(step.loss);
    }
    return values;
  }
  std::vector<StepRecord> steps = {};
  std::vector<EpochRecord> epochs = {};
  std::vector<CheckpointRecord> checkpoints = {};
};

class TrainerFixture : public ::testing::Test {
 protected:
  /// A run of some 50 ms an epoch: 4 steps of a perceptron.
  TrainConfig small(const std::string& folder) {
    TrainConfig config;
    config.model = "mlp";
    config.devices = "cpu";
    config.threads = 1;
    config.epochs = 2;
    config.batch_size = 64;
    config.lr = 0.05;
    config.max_train_samples = 256;
    config.max_eval_samples = 128;
    config.log_interval = 1;
    config.output = dir_ / folder;
    return config;
  }

  /// 5 batches, of which the last has 34 samples.
  TrainConfig uneven(const std::string& folder) {
    TrainConfig config = small(folder);
    config.max_train_samples = 290;
    config.epochs = 4;
    config.lr = 0.1;
    return config;
  }

  /// A part that the test does not give is the one that the settings name.
  TrainResult train(const TrainConfig& config, TrainerOptions options = {}) {
    options.own = named_parts(config, std::move(options.own), options.group);
    return Trainer(config, options).run();
  }

  /// Text of a file of the run folder `folder`.
  std::string get(const std::string& folder, const std::string& name) {
    return read_text(real_fs(), dir_ / (folder + "/" + name)).value();
  }
  ckpt::Value checkpoint(
      const std::string& folder,
      std::string_view name = kLatestFile) {
    return ckpt::load(dir_ / (folder + "/" + std::string(name))).value().root;
  }

  const test::ScratchDir dir_;
};

} // namespace lockstep::train
