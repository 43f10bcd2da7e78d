// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/scheduler.h"

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

namespace {

constexpr std::string_view kNoInitialLr =
    "param 'initial_lr' is not specified in param_groups[{}] when resuming "
    "scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't "
    "properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not "
    "recommended)";

// PyTorch's text.
constexpr const char* kOrderText =
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In "
    "PyTorch 1.1.0 and later, you should call them in the opposite order: "
    "`optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will "
    "result in PyTorch skipping the first value of the learning rate schedule. "
    "See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate";

// Of a tensor another one, since the group's goes on to other rates.
ckpt::Value copy_of(const ckpt::Value& value) {
  const ckpt::Tensor* tensor = value.as_tensor();
  return tensor == nullptr ? value : to_value(to_tensor(*tensor).clone());
}

} // namespace

void Scheduler::begin(std::int64_t last_epoch) {
  std::size_t index = 0;
  for (ParamGroup& group : groups()) {
    if (group.find("initial_lr") == nullptr) {
      if (last_epoch != -1) {
        raise(
            {.code = ErrorCode::kInvalidArgument,
             .op = "optim.schedule",
             .message = format(kNoInitialLr, index)});
      }
      group.set("initial_lr", copy_of(*group.find("lr")));
    }
    base_lrs_.push_back(group.number("initial_lr"));
    ++index;
  }
  last_epoch_ = last_epoch;
  if (!optimizer_->calls_before_schedules_) {
    optimizer_->calls_before_schedules_ = optimizer_->step_calls();
  }
  initial_step();
}

void Scheduler::initial_step() {
  step_count_ = 0;
  is_initial_ = true;
  try {
    advance(Order::kGiven);
  } catch (...) {
    is_initial_ = false; // it may be in a SequentialLR that was not made
    throw;
  }
  is_initial_ = false;
}

void Scheduler::step() {
  advance(Order::kChecked);
}

void Scheduler::fast_forward(std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) {
    advance(Order::kGiven);
  }
}

void Scheduler::warn_of_order() const {
  const auto steps = optimizer_->step_calls();
  if (steps && steps == optimizer_->calls_before_schedules_) {
    TORCH_WARN(kOrderText);
  }
}

void Scheduler::advance(Order order) {
  if (order == Order::kChecked && step_count_ == 1) {
    warn_of_order();
  }
  ++step_count_;
  ++last_epoch_;
  go_to(last_epoch_, get_lr());
}

void Scheduler::restart() {
  last_epoch_ = 0;
  go_to(0, closed_form_lr());
}

void Scheduler::go_to(
    std::int64_t last_epoch,
    const std::vector<double>& rates) {
  std::vector<ParamGroup>& all = groups();
  LOCKSTEP_CHECK(rates.size() == all.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    all[i].set_lr(rates[i]);
  }
  optimizer_->apply_options();
  set_position(last_epoch, rates);
}

std::vector<double> Scheduler::scaled_lrs(double factor) const {
  std::vector<double> result;
  for (const ParamGroup& group : groups()) {
    result.push_back(group.lr() * factor);
  }
  return result;
}

const std::vector<double>& Scheduler::base_lrs() const {
  if (base_lrs_.size() != groups().size()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.schedule",
         .message = format(
             "the schedule began with {}, the optimizer has {} now",
             counted(base_lrs_.size(), "parameter group"),
             groups().size()),
         .hint = "call add_param_group before the schedule is made"});
  }
  return base_lrs_;
}

ckpt::Value Scheduler::state_dict() const {
  ckpt::Dict state = {.items = own_state()};
  state.items.emplace_back("base_lrs", base_lrs_);
  state.items.emplace_back("last_epoch", last_epoch_);
  state.items.emplace_back("_step_count", step_count_);
  state.items.emplace_back("_is_initial", false);
  state.items.emplace_back("_get_lr_called_within_step", false);
  state.items.emplace_back("_last_lr", last_lr_);
  for (ckpt::Item& item : late_state()) {
    state.items.push_back(std::move(item));
  }
  return state;
}

void Scheduler::load_state_dict(const ckpt::Value& state) {
  const internal::StateReader reader(state, "scheduler state");
  // A group that was added after the schedule began has none.
  std::vector<double> base_lrs = reader.numbers("base_lrs");
  const std::int64_t last_epoch = reader.integer("last_epoch");
  // PyTorch 1.0 saved no counter, and none before 1.4 the last rates.
  const std::int64_t step_count = reader.has("_step_count")
                                      ? reader.integer("_step_count")
                                      : last_epoch + 1;
  std::vector<double> last_lr =
      reader.has("_last_lr") ? reader.per_group("_last_lr", groups().size())
                             : scaled_lrs(1.0);
  load_own_state(state);
  base_lrs_ = std::move(base_lrs);
  last_lr_ = std::move(last_lr);
  last_epoch_ = last_epoch;
  step_count_ = step_count;
}

} // namespace lockstep
