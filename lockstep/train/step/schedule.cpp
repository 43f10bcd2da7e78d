// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/factory.h"

namespace lockstep::train {
namespace {

std::vector<double> rates_of(const std::vector<ParamGroup>& groups) {
  std::vector<double> rates;
  rates.reserve(groups.size());
  for (const ParamGroup& group : groups) {
    rates.push_back(group.lr());
  }
  return rates;
}

/// Equal but for the order of multiplications.
bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}

bool is_of_steps(const TrainConfig& config) {
  return config.lr_scheduler == "onecyclelr";
}

} // namespace

std::unique_ptr<Optimizer> build_optimizer(
    const TrainConfig& config,
    Params params) {
  return make_optimizer(
      config.opt,
      std::move(params),
      {.lr = config.lr,
       .momentum = config.momentum,
       .weight_decay = config.weight_decay,
       .nesterov = config.nesterov,
       // None is what Python saves for an option that nobody chose.
       .fused = config.fused ? std::optional(true) : std::nullopt});
}

Schedule::Schedule(
    std::shared_ptr<Scheduler> scheduler,
    Optimizer& optimizer,
    bool is_per_step)
    : optimizer_(optimizer),
      is_per_step_(is_per_step),
      scheduler_(std::move(scheduler)),
      first_groups_(optimizer.param_groups()) {}

Schedule::Schedule(
    const TrainConfig& config,
    Optimizer& optimizer,
    std::int64_t steps_per_epoch)
    : Schedule(
          make_scheduler(
              config.lr_scheduler,
              optimizer,
              {.step_size = config.lr_step_size,
               .milestones = config.lr_milestones,
               .gamma = config.lr_gamma,
               .total_steps = config.epochs *
                              (is_of_steps(config) ? steps_per_epoch : 1)}),
          optimizer,
          is_of_steps(config)) {}

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

void Schedule::fast_forward(std::int64_t epochs, std::int64_t steps) {
  const auto total = total_steps();
  if (total && steps > *total) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "the checkpoint has no schedule; the one-cycle schedule of this "
             "run has {} steps, and {} are done",
             *total,
             steps),
         .hint = format("--epochs {} plans a longer one", epochs + 1),
         .detail = "E_SCHEDULE_END"});
  }
  std::vector<ParamGroup>& groups = optimizer_.param_groups();
  const std::vector<double> loaded = rates_of(groups);
  const bool has_several_rates =
      std::ranges::adjacent_find(loaded, std::not_equal_to()) != loaded.end();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    // What a schedule keeps in the groups; the file knows the first rate best.
    // As in PyTorch, groups of several rates begin with their own.
    if (has_several_rates && groups[i].find("initial_lr") == nullptr) {
      groups[i].set("initial_lr", loaded[i]);
    }
    for (const auto& [name, value] : first_groups_[i].options) {
      if (groups[i].find(name) == nullptr) {
        groups[i].set(name, value);
      }
    }
    groups[i].set_lr(groups[i].number("initial_lr"));
  }
  // The last of these steps by itself: what the rates were before it.
  const std::int64_t count = is_per_step_ ? steps : epochs;
  scheduler_->fast_forward(count - 1);
  const std::vector<double> before = rates_of(groups);
  scheduler_->fast_forward(std::min<std::int64_t>(count, 1));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool is_late =
        is_near(loaded[i], before[i]) && !is_near(loaded[i], groups[i].lr());
    if (!is_late) {
      groups[i].set_lr(loaded[i]);
    }
  }
}

std::optional<std::int64_t> Schedule::saved_number(std::string_view key) const {
  const ckpt::Value state = scheduler_->state_dict();
  const ckpt::Value* number = state.find(key);
  return number == nullptr || number->as_int() == nullptr
             ? std::nullopt
             : std::optional(*number->as_int());
}

std::optional<std::int64_t> Schedule::total_steps() const {
  return saved_number("total_steps");
}

std::string Schedule::overrun_text(std::int64_t epochs) const {
  const auto lowest = saved_number("T_max");
  const std::int64_t last = scheduler_->last_epoch() + epochs;
  return is_per_step_ || !lowest || last <= *lowest
             ? std::string()
             : format(
                   "the cosine schedule of the checkpoint is lowest after {}, "
                   "and the run goes to {}: from there its rate rises again; "
                   "--initial-checkpoint begins a new run with a new schedule",
                   counted(static_cast<std::uint64_t>(*lowest), "epoch"),
                   last);
}

std::optional<std::int64_t> Schedule::steps_left() const {
  const auto total = total_steps();
  return total ? std::optional(*total - scheduler_->last_epoch())
               : std::nullopt;
}

void Schedule::check_room(std::int64_t steps, std::int64_t steps_per_epoch)
    const {
  const auto total = total_steps();
  const std::int64_t room = total.value_or(0) - scheduler_->last_epoch();
  if (total && steps > room) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "the one-cycle schedule of the checkpoint has {} of {} steps "
             "left, the run would make {}",
             room,
             *total,
             steps),
         .hint = format(
             "--epochs {} ends with it; --initial-checkpoint begins a new run "
             "with a new schedule",
             *total / steps_per_epoch),
         .detail = "E_SCHEDULE_END"});
  }
}

} // namespace lockstep::train
