// SPDX-License-Identifier: BSD-3-Clause
#include "tests/optim/make_schedule.h"

#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/ckpt/convert.h"
#include "lockstep/optim/schedules.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using MadeSchedule = std::shared_ptr<Scheduler>;

LrLambda function_of(std::string_view name) {
  if (name == "decay") {
    return [](std::int64_t x) { return std::pow(0.95, x); };
  }
  if (name == "stairs") {
    return [](std::int64_t x) {
      const std::int64_t stair = x / 3 + 1;
      return static_cast<double>(stair);
    };
  }
  if (name == "half") {
    return [](std::int64_t) { return 0.5; };
  }
  return nullptr;
}

/// The argument as the option's type. A number is a list of one; functions are
/// texts.
template <class T>
void take(const ckpt::Entry& argument, T& target) {
  target = argument.to<T>();
}
void take(const ckpt::Entry& argument, std::vector<double>& target) {
  target = argument.as_list() == nullptr ? std::vector{argument.to<double>()}
                                         : argument.to<std::vector<double>>();
}
void take(const ckpt::Entry& argument, LrLambda& target) {
  target = function_of(argument.text());
}
void take(const ckpt::Entry& argument, std::vector<LrLambda>& target) {
  target.clear();
  for (const ckpt::Entry& function : argument) {
    target.push_back(function_of(function.text()));
  }
}

/// Python's name of an option, and where it goes.
template <class Options, class T>
struct Field {
  std::string_view name = {};
  T Options::*member = nullptr;
};

/// Options from keyword arguments; throws for one that there is not.
template <class Options, class... T>
Options options_of(const Value& args, const Field<Options, T>&... fields) {
  Options options;
  for (const auto& [key, argument] : args.items()) {
    const auto take_if = [&](const auto& field) {
      if (field.name != key.text()) {
        return false;
      }
      take(argument, options.*field.member);
      return true;
    };
    if (!(take_if(fields) || ...)) {
      throw std::out_of_range("no option " + std::string(key.text()));
    }
  }
  return options;
}

template <class Schedule, class Options, class... T>
auto maker(const Field<Options, T>&... fields) {
  return [=](const OptimizerRef& optimizer, const Value& args) -> MadeSchedule {
    return std::make_shared<Schedule>(
        optimizer,
        options_of<Options>(args, fields...));
  };
}

template <class Options, class T>
Field<Options, T> field(std::string_view name, T Options::*member) {
  return {name, member};
}

using Maker =
    std::function<MadeSchedule(const OptimizerRef&, const Value& args)>;

const std::map<std::string_view, Maker> kMakers = {
    {"StepLR",
     maker<StepLR>(
         field("step_size", &StepLROptions::step_size),
         field("gamma", &StepLROptions::gamma),
         field("last_epoch", &StepLROptions::last_epoch))},
    {"MultiStepLR",
     maker<MultiStepLR>(
         field("milestones", &MultiStepLROptions::milestones),
         field("gamma", &MultiStepLROptions::gamma),
         field("last_epoch", &MultiStepLROptions::last_epoch))},
    {"ConstantLR",
     maker<ConstantLR>(
         field("factor", &ConstantLROptions::factor),
         field("total_iters", &ConstantLROptions::total_iters),
         field("last_epoch", &ConstantLROptions::last_epoch))},
    {"LinearLR",
     maker<LinearLR>(
         field("start_factor", &LinearLROptions::start_factor),
         field("end_factor", &LinearLROptions::end_factor),
         field("total_iters", &LinearLROptions::total_iters),
         field("last_epoch", &LinearLROptions::last_epoch))},
    {"ExponentialLR",
     maker<ExponentialLR>(
         field("gamma", &ExponentialLROptions::gamma),
         field("last_epoch", &ExponentialLROptions::last_epoch))},
    {"PolynomialLR",
     maker<PolynomialLR>(
         field("total_iters", &PolynomialLROptions::total_iters),
         field("power", &PolynomialLROptions::power),
         field("last_epoch", &PolynomialLROptions::last_epoch))},
    {"SWALR",
     maker<SWALR>(
         field("swa_lr", &SWALROptions::swa_lr),
         field("anneal_epochs", &SWALROptions::anneal_epochs),
         field("anneal_strategy", &SWALROptions::anneal_strategy),
         field("last_epoch", &SWALROptions::last_epoch))},
    {"CosineAnnealingLR",
     maker<CosineAnnealingLR>(
         field("T_max", &CosineAnnealingLROptions::t_max),
         field("eta_min", &CosineAnnealingLROptions::eta_min),
         field("last_epoch", &CosineAnnealingLROptions::last_epoch))},
    {"LambdaLR",
     maker<LambdaLR>(
         field("lr_lambda", &LambdaLROptions::lr_lambda),
         field("last_epoch", &LambdaLROptions::last_epoch))},
    {"MultiplicativeLR",
     maker<MultiplicativeLR>(
         field("lr_lambda", &LambdaLROptions::lr_lambda),
         field("last_epoch", &LambdaLROptions::last_epoch))},
    {"CosineAnnealingWarmRestarts",
     maker<CosineAnnealingWarmRestarts>(
         field("T_0", &CosineAnnealingWarmRestartsOptions::t_0),
         field("T_mult", &CosineAnnealingWarmRestartsOptions::t_mult),
         field("eta_min", &CosineAnnealingWarmRestartsOptions::eta_min),
         field("last_epoch", &CosineAnnealingWarmRestartsOptions::last_epoch))},
    {"CyclicLR",
     maker<CyclicLR>(
         field("base_lr", &CyclicLROptions::base_lr),
         field("max_lr", &CyclicLROptions::max_lr),
         field("step_size_up", &CyclicLROptions::step_size_up),
         field("step_size_down", &CyclicLROptions::step_size_down),
         field("mode", &CyclicLROptions::mode),
         field("gamma", &CyclicLROptions::gamma),
         field("scale_fn", &CyclicLROptions::scale_fn),
         field("scale_mode", &CyclicLROptions::scale_mode),
         field("cycle_momentum", &CyclicLROptions::cycle_momentum),
         field("base_momentum", &CyclicLROptions::base_momentum),
         field("max_momentum", &CyclicLROptions::max_momentum),
         field("last_epoch", &CyclicLROptions::last_epoch))},
    {"OneCycleLR",
     maker<OneCycleLR>(
         field("max_lr", &OneCycleLROptions::max_lr),
         field("total_steps", &OneCycleLROptions::total_steps),
         field("epochs", &OneCycleLROptions::epochs),
         field("steps_per_epoch", &OneCycleLROptions::steps_per_epoch),
         field("pct_start", &OneCycleLROptions::pct_start),
         field("anneal_strategy", &OneCycleLROptions::anneal_strategy),
         field("cycle_momentum", &OneCycleLROptions::cycle_momentum),
         field("three_phase", &OneCycleLROptions::three_phase),
         field("div_factor", &OneCycleLROptions::div_factor),
         field("final_div_factor", &OneCycleLROptions::final_div_factor),
         field("base_momentum", &OneCycleLROptions::base_momentum),
         field("max_momentum", &OneCycleLROptions::max_momentum))},
    {"ReduceLROnPlateau",
     maker<ReduceLROnPlateau>(
         field("mode", &ReduceLROnPlateauOptions::mode),
         field("factor", &ReduceLROnPlateauOptions::factor),
         field("patience", &ReduceLROnPlateauOptions::patience),
         field("threshold", &ReduceLROnPlateauOptions::threshold),
         field("threshold_mode", &ReduceLROnPlateauOptions::threshold_mode),
         field("cooldown", &ReduceLROnPlateauOptions::cooldown),
         field("min_lr", &ReduceLROnPlateauOptions::min_lr),
         field("eps", &ReduceLROnPlateauOptions::eps))}};

} // namespace

std::shared_ptr<Scheduler> make_schedule(
    std::string_view kind,
    const Value& args,
    const OptimizerRef& optimizer) {
  return kMakers.at(kind)(optimizer, args);
}

std::shared_ptr<Scheduler> make_schedule(
    const Value& schedule,
    const OptimizerRef& optimizer) {
  const std::string_view kind = schedule.find("kind")->text();
  const Value& args = *schedule.find("args");
  const Value* inner = schedule.find("schedulers");
  if (inner == nullptr) {
    return make_schedule(kind, args, optimizer);
  }
  std::vector<std::shared_ptr<Scheduler>> schedulers;
  for (const Value& one : inner->as_list()->items) {
    schedulers.push_back(make_schedule(one, optimizer));
  }
  if (kind == "ChainedScheduler") {
    return std::make_shared<ChainedScheduler>(std::move(schedulers));
  }
  auto options = options_of<SequentialLROptions>(
      args,
      field("milestones", &SequentialLROptions::milestones),
      field("last_epoch", &SequentialLROptions::last_epoch));
  options.schedulers = std::move(schedulers);
  return std::make_shared<SequentialLR>(optimizer, std::move(options));
}

void step_schedule(Scheduler& scheduler, const Value& argument) {
  if (argument.is_none()) {
    scheduler.step();
    return;
  }
  if (auto* plateau = dynamic_cast<ReduceLROnPlateau*>(&scheduler)) {
    plateau->step(*argument.number());
    return;
  }
  auto& restarts = dynamic_cast<CosineAnnealingWarmRestarts&>(scheduler);
  if (argument.as_int() != nullptr) {
    restarts.step(*argument.as_int());
  } else {
    restarts.step(*argument.number());
  }
}

} // namespace lockstep::test
