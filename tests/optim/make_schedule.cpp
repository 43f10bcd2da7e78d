// SPDX-License-Identifier: BSD-3-Clause
#include "tests/optim/make_schedule.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/optim/composed_schedules.h"
#include "lockstep/optim/cyclic_lr.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/reduce_lr_on_plateau.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using MadeSchedule = std::shared_ptr<Scheduler>;

/// Keyword arguments: each call takes one that is there.
class Arguments {
 public:
  explicit Arguments(const Value& args) : args_(args) {}

  void take(const char* key, std::int64_t& target) const {
    if (const Value* value = args_.find(key)) {
      target = *value->as_int();
    }
  }
  void take(const char* key, std::optional<std::int64_t>& target) const {
    if (const Value* value = args_.find(key)) {
      target = *value->as_int();
    }
  }
  void take(const char* key, double& target) const {
    if (const Value* value = args_.find(key)) {
      target = *value->number();
    }
  }
  void take(const char* key, bool& target) const {
    if (const Value* value = args_.find(key)) {
      target = *value->as_bool();
    }
  }
  void take(const char* key, std::string& target) const {
    if (const Value* value = args_.find(key)) {
      target = *value->as_string();
    }
  }
  /// A number is a list of one.
  template <class T>
  void take(const char* key, std::vector<T>& target) const {
    if (const Value* value = args_.find(key)) {
      target.clear();
      for (const Value& item :
           value->elements() ? *value->elements() : std::vector{*value}) {
        target.push_back(static_cast<T>(*item.number()));
      }
    }
  }
  void take(const char* key, LrLambda& target) const;
  void take(const char* key, std::vector<LrLambda>& target) const;

 private:
  const Value& args_;
};

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

void Arguments::take(const char* key, LrLambda& target) const {
  if (const Value* value = args_.find(key)) {
    target = function_of(value->text());
  }
}

void Arguments::take(const char* key, std::vector<LrLambda>& target) const {
  if (const Value* value = args_.find(key)) {
    for (const Value& item : *value->elements()) {
      target.push_back(function_of(item.text()));
    }
  }
}

MadeSchedule make_step(const OptimizerRef& optimizer, const Arguments& args) {
  StepLROptions options;
  args.take("step_size", options.step_size);
  args.take("gamma", options.gamma);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<StepLR>(optimizer, options);
}

MadeSchedule make_multi_step(
    const OptimizerRef& optimizer,
    const Arguments& args) {
  MultiStepLROptions options;
  args.take("milestones", options.milestones);
  args.take("gamma", options.gamma);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<MultiStepLR>(optimizer, options);
}

MadeSchedule make_constant(
    const OptimizerRef& optimizer,
    const Arguments& args) {
  ConstantLROptions options;
  args.take("factor", options.factor);
  args.take("total_iters", options.total_iters);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<ConstantLR>(optimizer, options);
}

MadeSchedule make_linear(const OptimizerRef& optimizer, const Arguments& args) {
  LinearLROptions options;
  args.take("start_factor", options.start_factor);
  args.take("end_factor", options.end_factor);
  args.take("total_iters", options.total_iters);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<LinearLR>(optimizer, options);
}

MadeSchedule make_exponential(
    const OptimizerRef& optimizer,
    const Arguments& args) {
  ExponentialLROptions options;
  args.take("gamma", options.gamma);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<ExponentialLR>(optimizer, options);
}

MadeSchedule make_polynomial(
    const OptimizerRef& optimizer,
    const Arguments& args) {
  PolynomialLROptions options;
  args.take("total_iters", options.total_iters);
  args.take("power", options.power);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<PolynomialLR>(optimizer, options);
}

MadeSchedule make_cosine(const OptimizerRef& optimizer, const Arguments& args) {
  CosineAnnealingLROptions options;
  args.take("T_max", options.t_max);
  args.take("eta_min", options.eta_min);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<CosineAnnealingLR>(optimizer, options);
}

template <class T>
MadeSchedule by_function(const OptimizerRef& optimizer, const Arguments& args) {
  LambdaLROptions options;
  args.take("lr_lambda", options.lr_lambda);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<T>(optimizer, options);
}

MadeSchedule make_one_cycle(
    const OptimizerRef& optimizer,
    const Arguments& args) {
  OneCycleLROptions options;
  args.take("max_lr", options.max_lr);
  args.take("total_steps", options.total_steps);
  args.take("epochs", options.epochs);
  args.take("steps_per_epoch", options.steps_per_epoch);
  args.take("pct_start", options.pct_start);
  args.take("anneal_strategy", options.anneal_strategy);
  args.take("cycle_momentum", options.cycle_momentum);
  args.take("three_phase", options.three_phase);
  args.take("div_factor", options.div_factor);
  args.take("final_div_factor", options.final_div_factor);
  args.take("base_momentum", options.base_momentum);
  args.take("max_momentum", options.max_momentum);
  return std::make_shared<OneCycleLR>(optimizer, options);
}

MadeSchedule make_cyclic(const OptimizerRef& optimizer, const Arguments& args) {
  CyclicLROptions options;
  args.take("base_lr", options.base_lr);
  args.take("max_lr", options.max_lr);
  args.take("step_size_up", options.step_size_up);
  args.take("step_size_down", options.step_size_down);
  args.take("mode", options.mode);
  args.take("gamma", options.gamma);
  args.take("scale_fn", options.scale_fn);
  args.take("scale_mode", options.scale_mode);
  args.take("cycle_momentum", options.cycle_momentum);
  args.take("base_momentum", options.base_momentum);
  args.take("max_momentum", options.max_momentum);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<CyclicLR>(optimizer, options);
}

MadeSchedule make_warm_restarts(
    const OptimizerRef& optimizer,
    const Arguments& args) {
  CosineAnnealingWarmRestartsOptions options;
  args.take("T_0", options.t_0);
  args.take("T_mult", options.t_mult);
  args.take("eta_min", options.eta_min);
  args.take("last_epoch", options.last_epoch);
  return std::make_shared<CosineAnnealingWarmRestarts>(optimizer, options);
}

MadeSchedule make_plateau(
    const OptimizerRef& optimizer,
    const Arguments& args) {
  ReduceLROnPlateauOptions options;
  args.take("mode", options.mode);
  args.take("factor", options.factor);
  args.take("patience", options.patience);
  args.take("threshold", options.threshold);
  args.take("threshold_mode", options.threshold_mode);
  args.take("cooldown", options.cooldown);
  args.take("min_lr", options.min_lr);
  args.take("eps", options.eps);
  return std::make_shared<ReduceLROnPlateau>(optimizer, options);
}

struct Maker {
  std::string_view kind = {};
  MadeSchedule (*make)(const OptimizerRef& optimizer, const Arguments& args) =
      nullptr;
};

constexpr std::array kMakers = {
    Maker{"StepLR", make_step},
    Maker{"MultiStepLR", make_multi_step},
    Maker{"ConstantLR", make_constant},
    Maker{"LinearLR", make_linear},
    Maker{"ExponentialLR", make_exponential},
    Maker{"PolynomialLR", make_polynomial},
    Maker{"CosineAnnealingLR", make_cosine},
    Maker{"LambdaLR", by_function<LambdaLR>},
    Maker{"MultiplicativeLR", by_function<MultiplicativeLR>},
    Maker{"CosineAnnealingWarmRestarts", make_warm_restarts},
    Maker{"CyclicLR", make_cyclic},
    Maker{"OneCycleLR", make_one_cycle},
    Maker{"ReduceLROnPlateau", make_plateau}};

} // namespace

std::shared_ptr<Scheduler> make_schedule(
    std::string_view kind,
    const Value& args,
    const OptimizerRef& optimizer) {
  for (const Maker& maker : kMakers) {
    if (maker.kind == kind) {
      return maker.make(optimizer, Arguments(args));
    }
  }
  throw std::out_of_range("no maker for " + std::string(kind));
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
  SequentialLROptions options;
  for (const Value& one : inner->as_list()->items) {
    options.schedulers.push_back(make_schedule(one, optimizer));
  }
  if (kind == "ChainedScheduler") {
    return std::make_shared<ChainedScheduler>(std::move(options.schedulers));
  }
  Arguments(args).take("milestones", options.milestones);
  Arguments(args).take("last_epoch", options.last_epoch);
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
