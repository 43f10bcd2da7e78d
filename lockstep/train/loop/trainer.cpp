// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/trainer.h"

#include <utility>

#include "lockstep/train/loop/run_start.h"
#include "lockstep/train/loop/training_run.h"

namespace lockstep::train {

Trainer::Trainer(TrainConfig config, const TrainerOptions& options)
    : run_(std::make_unique<TrainingRun>(
          decide(std::move(config), options),
          options)) {}

Trainer::~Trainer() = default;

TrainResult Trainer::run() {
  return run_->run();
}

std::vector<StartLine> Trainer::plan() const {
  return run_->plan();
}

const TrainConfig& Trainer::config() const {
  return run_->config();
}

} // namespace lockstep::train
