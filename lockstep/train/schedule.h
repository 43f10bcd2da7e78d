// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizer and learning rate as the settings name them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/module.h>

#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// The optimizer `config.opt` over all parameters of `model`.
/// Errors: throws kInvalidArgument for options out of range.
std::unique_ptr<Optimizer> build_optimizer(
    const TrainConfig& config,
    const torch::nn::Module& model);

/// A scheduler and the moment it steps: after each step (onecyclelr) or after
/// each epoch (all others), as PyTorch's scripts do.
/// Ownership: the optimizer must outlive it.
class Schedule {
 public:
  /// Errors: throws kInvalidArgument for options out of range.
  Schedule(
      const TrainConfig& config,
      Optimizer& optimizer,
      std::int64_t steps_per_epoch);

  void after_step();
  void after_epoch();
  /// Goes to where it stands after `epochs` and `steps`, for a checkpoint that
  /// did not save it. The rates that the optimizer loaded stay, unless they are
  /// those of the step before: many scripts set a rate when its epoch begins.
  /// Errors: throws kMismatch (E_SCHEDULE_END), and nothing changes, if it is
  /// planned for fewer steps.
  void fast_forward(std::int64_t epochs, std::int64_t steps);
  /// Steps until its end; nothing if it has none.
  [[nodiscard]] std::optional<std::int64_t> steps_left() const;
  /// Errors: throws kMismatch (E_SCHEDULE_END) if the schedule ends before
  /// `steps` more are made: it was planned for a shorter run.
  void check_room(std::int64_t steps, std::int64_t steps_per_epoch) const;
  Scheduler& scheduler() {
    return *scheduler_;
  }

 private:
  /// Steps from begin to end; nothing if it has no end.
  [[nodiscard]] std::optional<std::int64_t> total_steps() const;

  Optimizer& optimizer_;
  bool is_per_step_ = false;
  std::unique_ptr<Scheduler> scheduler_;
  /// The groups as the scheduler prepared them.
  std::vector<ParamGroup> first_groups_;
};

} // namespace lockstep::train
