// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizer and learning rate as the settings name them.
#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/train/config.h"

namespace lockstep::train {

/// The optimizer `config.opt` over all parameters of `model`.
/// Errors: throws kInvalidArgument for options out of range.
std::unique_ptr<Optimizer> build_optimizer(
    const TrainConfig& config,
    const torch::nn::Module& model);

/// A scheduler and the moment it steps: after each step (onecyclelr) or after
/// each epoch (all others), as PyTorch's scripts do.
class Schedule {
 public:
  /// Errors: throws kInvalidArgument for options out of range.
  Schedule(
      const TrainConfig& config,
      Optimizer& optimizer,
      std::int64_t steps_per_epoch);

  void after_step();
  void after_epoch();
  Scheduler& scheduler() {
    return *scheduler_;
  }

 private:
  bool is_per_step_ = false;
  std::unique_ptr<Scheduler> scheduler_;
};

} // namespace lockstep::train
