// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/schedules.h"
#include "lockstep/train/settings/internal/schedules.h"

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

// Null for another one.
ReduceLROnPlateau* plateau_of(Scheduler& scheduler) {
  return dynamic_cast<ReduceLROnPlateau*>(&scheduler);
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

namespace {

[[noreturn]] void refuse_warmup(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.schedule",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_FLAGS"});
}

void check_warmup(
    const TrainConfig& config,
    const ScheduleRow& row,
    std::int64_t steps_per_epoch) {
  const bool is_of_epochs = config.warmup_epochs > 0;
  if (!is_of_epochs && config.warmup_steps == 0) {
    return;
  }
  const std::string flag = is_of_epochs ? "--warmup-epochs" : "--warmup-steps";
  if (is_of_epochs && config.warmup_steps > 0) {
    refuse_warmup(
        "--warmup-epochs and --warmup-steps are two warm-ups",
        "leave one of them out");
  }
  if (row.is_of_steps || (is_of_epochs && row.has_metric)) {
    refuse_warmup(
        format(
            "{} does not go with --lr-scheduler {}",
            flag,
            config.lr_scheduler),
        row.is_of_steps ? "onecyclelr warms up by itself"
                        : "its steps have a metric, those of a warm-up none: "
                          "--warmup-steps goes with it");
  }
  const std::int64_t own =
      is_of_epochs ? config.warmup_epochs : config.warmup_steps;
  const std::int64_t all = config.epochs * (is_of_epochs ? 1 : steps_per_epoch);
  if (own >= all && !config.test_only) {
    refuse_warmup(
        format(
            "{} {} of {} {} leaves none for the schedule",
            flag,
            own,
            all,
            is_of_epochs ? "epochs" : "steps"),
        "fewer of them, or more --epochs");
  }
}

constexpr double kFirstShare = 0.01;

std::shared_ptr<Scheduler> warmup_over(
    Optimizer& optimizer,
    std::int64_t length) {
  return std::make_shared<LinearLR>(
      optimizer,
      LinearLROptions{.start_factor = kFirstShare, .total_iters = length});
}

std::shared_ptr<Scheduler> scheduler_for(
    const TrainConfig& config,
    Optimizer& optimizer,
    std::int64_t steps_per_epoch,
    Better better) {
  const ScheduleRow row = schedule_row(config.lr_scheduler);
  check_warmup(config, row, steps_per_epoch);
  const std::int64_t epochs = config.epochs - config.warmup_epochs;
  std::shared_ptr<Scheduler> scheduler = make_scheduler(
      config.lr_scheduler,
      optimizer,
      {.step_size = config.lr_step_size,
       .milestones = config.lr_milestones,
       .gamma = config.lr_gamma,
       .total_steps = epochs * (row.is_of_steps ? steps_per_epoch : 1),
       .eta_min = config.min_lr,
       .mode = better == Better::kHigher ? "max" : "min",
       .patience = config.lr_patience});
  if (config.warmup_epochs == 0) {
    return scheduler;
  }
  const auto warmup = warmup_over(optimizer, config.warmup_epochs);
  return std::make_shared<SequentialLR>(
      optimizer,
      SequentialLROptions{
          .schedulers = {warmup, std::move(scheduler)},
          .milestones = {config.warmup_epochs}});
}

} // namespace

Schedule::Schedule(
    const TrainConfig& config,
    Optimizer& optimizer,
    std::int64_t steps_per_epoch,
    Better better)
    : Schedule(
          scheduler_for(config, optimizer, steps_per_epoch, better),
          optimizer,
          schedule_row(config.lr_scheduler).is_of_steps) {
  if (config.warmup_steps > 0) {
    warmup_ = warmup_over(optimizer, config.warmup_steps);
    warmup_steps_ = config.warmup_steps;
  }
  if (config.swa_start > 0 && config.swa_lr > 0) {
    swa_ = std::make_shared<SWALR>(
        optimizer,
        SWALROptions{.swa_lr = {config.swa_lr}});
    swa_start_ = config.swa_start;
  }
}

void Schedule::after_step() {
  if (is_per_step_) {
    scheduler_->fast_forward(1);
  }
  if (warmup_) {
    warmup_->fast_forward(1);
  }
}

void Schedule::skip_warmup() {
  if (!warmup_) {
    return;
  }
  std::vector<ParamGroup>& groups = optimizer_.param_groups();
  const std::vector<double> rates = rates_of(groups);
  warmup_->fast_forward(warmup_steps_);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].set_lr(rates[i]);
  }
}

void Schedule::after_epoch(
    std::int64_t epoch,
    std::optional<double> chosen_by) {
  if (swa_ != nullptr && epoch >= swa_start_) {
    swa_->fast_forward(1);
    return;
  }
  if (is_per_step_) {
    return;
  }
  if (auto* const plateau = plateau_of(*scheduler_)) {
    plateau->step(chosen_by.value_or(std::nan("")));
  } else {
    // Not a step: a run that goes on behind the last step of an epoch would be
    // told that the optimizer has made none.
    scheduler_->fast_forward(1);
  }
}

void Schedule::fast_forward(std::int64_t epochs, std::int64_t steps) {
  if (plateau_of(*scheduler_) != nullptr) {
    return; // what it has seen is not known
  }
  const auto total = total_steps();
  const std::int64_t count = is_per_step_ ? steps : epochs;
  if (total && count > *total) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "the checkpoint has no schedule; the one-cycle schedule of this "
             "run has {} steps, and {} are done",
             *total,
             count),
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
    // A warm-up begins below its rate.
    const double base = first_groups_[i].number("initial_lr");
    const double share = base == 0 ? 1.0 : first_groups_[i].lr() / base;
    groups[i].set_lr(groups[i].number("initial_lr") * share);
  }
  // The last of these steps by itself: what the rates were before it.
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

void Schedule::check_mode(const BestBy& best_by) const {
  if (plateau_of(*scheduler_) == nullptr) {
    return;
  }
  const ckpt::Value state = scheduler_->state_dict();
  const bool is_max = state.find("mode")->text() == "max";
  if (is_max == (best_by.better == Better::kHigher)) {
    return;
  }
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.schedule",
       .message = format(
           "the plateau schedule waits for a {} number, and the best epoch is "
           "that of the {} {}",
           is_max ? "higher" : "lower",
           is_max ? "lowest" : "highest",
           best_by.column),
       .hint = "go on with the run's --metric; a program's own schedule has "
               "the mode of what chooses the best",
       .detail = "E_OTHER_SETTING"});
}

void Schedule::forget_tests() {
  if (plateau_of(*scheduler_) == nullptr) {
    return;
  }
  ckpt::Value state = scheduler_->state_dict();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool is_max = std::as_const(state).find("mode")->text() == "max";
  state.set("best", is_max ? -kInfinity : kInfinity);
  state.set("num_bad_epochs", 0);
  scheduler_->load_state_dict(state);
}

std::optional<std::int64_t> Schedule::lowest_epoch() const {
  const ckpt::Value state = scheduler_->state_dict();
  const ckpt::Value* inner = state.find("_schedulers");
  if (inner == nullptr || inner->as_list() == nullptr) {
    return saved_number("T_max");
  }
  const ckpt::Value* last = inner->as_list()->items.back().find("T_max");
  const ckpt::Value* milestones = state.find("_milestones");
  if (last == nullptr || milestones == nullptr) {
    return std::nullopt;
  }
  // One of a single schedule has none.
  const std::vector<ckpt::Value>& begins = milestones->as_list()->items;
  return *last->as_int() + (begins.empty() ? 0 : *begins.back().as_int());
}

std::string Schedule::overrun_text(std::int64_t epochs) const {
  const auto lowest = is_per_step_ ? std::nullopt : lowest_epoch();
  const std::int64_t last = scheduler_->last_epoch() + epochs;
  return !lowest || last <= *lowest
             ? std::string()
             : format(
                   "the cosine schedule of the checkpoint is lowest after {}, "
                   "and the run goes to {}: from there its rate rises again; "
                   "--initial-checkpoint begins a new run with a new schedule",
                   counted(static_cast<std::uint64_t>(*lowest), "epoch"),
                   last);
}

std::optional<std::int64_t> Schedule::epochs_left(
    std::int64_t steps_per_epoch) const {
  const auto total = total_steps();
  return total ? std::optional(
                     (*total - scheduler_->last_epoch()) /
                     (is_per_step_ ? steps_per_epoch : 1))
               : std::nullopt;
}

void Schedule::check_room(
    std::int64_t epochs,
    std::int64_t steps,
    std::int64_t steps_per_epoch) const {
  const auto total = total_steps();
  const std::int64_t room = total.value_or(0) - scheduler_->last_epoch();
  const std::int64_t needed = is_per_step_ ? steps : epochs;
  if (total && needed > room) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "the one-cycle schedule of the checkpoint has {} of {} steps "
             "left, the run would make {}",
             room,
             *total,
             needed),
         .hint = format(
             "--epochs {} ends with it; --initial-checkpoint begins a new run "
             "with a new schedule",
             *total / (is_per_step_ ? steps_per_epoch : 1)),
         .detail = "E_SCHEDULE_END"});
  }
}

} // namespace lockstep::train
