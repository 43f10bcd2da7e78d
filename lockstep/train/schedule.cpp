// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/schedule.h"

#include "lockstep/optim/factory.h"

namespace lockstep::train {

std::unique_ptr<Optimizer> build_optimizer(
    const TrainConfig& config,
    const torch::nn::Module& model) {
  return make_optimizer(
      config.opt,
      model,
      {.lr = config.lr,
       .momentum = config.momentum,
       .weight_decay = config.weight_decay,
       .nesterov = config.nesterov,
       // None is what Python saves for an option that nobody chose.
       .fused = config.fused ? std::optional(true) : std::nullopt});
}

Schedule::Schedule(
    const TrainConfig& config,
    Optimizer& optimizer,
    std::int64_t steps_per_epoch)
    : is_per_step_(config.lr_scheduler == "onecyclelr"),
      scheduler_(make_scheduler(
          config.lr_scheduler,
          optimizer,
          {.step_size = config.lr_step_size,
           .milestones = config.lr_milestones,
           .gamma = config.lr_gamma,
           .total_steps =
               config.epochs * (is_per_step_ ? steps_per_epoch : 1)})) {}

void Schedule::after_step() {
  if (is_per_step_) {
    scheduler_->step();
  }
}

void Schedule::after_epoch() {
  if (!is_per_step_) {
    scheduler_->step();
  }
}

} // namespace lockstep::train
