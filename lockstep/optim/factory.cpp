// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cctype>
#include <span>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/named_state.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/schedules.h"

namespace lockstep {

namespace {

using OptimizerMaker =
    std::unique_ptr<Optimizer> (*)(Params, const OptimizerOptions&);
using SchedulerMaker = std::unique_ptr<Scheduler> (*)(
    const OptimizerRef&,
    const SchedulerOptions&);

template <class Maker>
struct Row {
  std::string_view name = {};
  Maker make = nullptr;
};

std::unique_ptr<Optimizer> make_sgd(Params params, const OptimizerOptions& o) {
  return std::make_unique<SGD>(
      std::move(params),
      SGDOptions{
          .lr = o.lr,
          .momentum = o.momentum,
          .dampening = o.dampening,
          .weight_decay = o.weight_decay.value_or(0),
          .nesterov = o.nesterov,
          .maximize = o.maximize,
          .fused = o.fused});
}

template <class T>
std::unique_ptr<Optimizer> make_adam(Params params, const OptimizerOptions& o) {
  return std::make_unique<T>(
      std::move(params),
      AdamOptions{
          .lr = o.lr,
          .betas = o.betas,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .amsgrad = o.amsgrad,
          .maximize = o.maximize,
          .fused = o.fused});
}

std::unique_ptr<Scheduler> make_constant(
    const OptimizerRef& optimizer,
    const SchedulerOptions& /*options*/) {
  return std::make_unique<ConstantLR>(
      optimizer,
      ConstantLROptions{.factor = 1.0});
}

std::unique_ptr<Scheduler> make_step(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<StepLR>(
      optimizer,
      StepLROptions{.step_size = o.step_size, .gamma = o.gamma});
}

std::unique_ptr<Scheduler> make_multi_step(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<MultiStepLR>(
      optimizer,
      MultiStepLROptions{.milestones = o.milestones, .gamma = o.gamma});
}

std::unique_ptr<Scheduler> make_cosine(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<CosineAnnealingLR>(
      optimizer,
      CosineAnnealingLROptions{.t_max = o.total_steps, .eta_min = o.eta_min});
}

std::unique_ptr<Scheduler> make_one_cycle(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  std::vector<double> max_lr;
  for (const ParamGroup& group : optimizer->param_groups()) {
    max_lr.push_back(o.max_lr.value_or(group.lr()));
  }
  return std::make_unique<OneCycleLR>(
      optimizer,
      OneCycleLROptions{
          .max_lr = std::move(max_lr),
          .total_steps = o.total_steps,
          .pct_start = o.pct_start});
}

std::unique_ptr<Scheduler> make_linear(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<LinearLR>(
      optimizer,
      LinearLROptions{
          .start_factor = o.start_factor,
          .end_factor = o.end_factor,
          .total_iters = o.total_iters});
}

std::unique_ptr<Scheduler> make_exponential(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<ExponentialLR>(
      optimizer,
      ExponentialLROptions{.gamma = o.gamma});
}

std::unique_ptr<Scheduler> make_polynomial(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<PolynomialLR>(
      optimizer,
      PolynomialLROptions{.total_iters = o.total_iters, .power = o.power});
}

std::unique_ptr<Scheduler> make_restarts(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<CosineAnnealingWarmRestarts>(
      optimizer,
      CosineAnnealingWarmRestartsOptions{
          .t_0 = o.t_0,
          .t_mult = o.t_mult,
          .eta_min = o.eta_min});
}

std::unique_ptr<Scheduler> make_cyclic(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  if (!o.base_lr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.create",
         .message = "cycliclr: expected base_lr, its lowest rate, got none"});
  }
  const double lr = optimizer->param_groups().front().lr();
  return std::make_unique<CyclicLR>(
      optimizer,
      CyclicLROptions{
          .base_lr = {*o.base_lr},
          .max_lr = {o.max_lr.value_or(lr)},
          .step_size_up = o.step_size_up});
}

std::unique_ptr<Scheduler> make_plateau(
    const OptimizerRef& optimizer,
    const SchedulerOptions& o) {
  return std::make_unique<ReduceLROnPlateau>(
      optimizer,
      ReduceLROnPlateauOptions{
          .mode = o.mode,
          .factor = o.gamma,
          .patience = o.patience,
          .min_lr = {o.eta_min}});
}

constexpr std::array<Row<OptimizerMaker>, 3> kOptimizers = {{
    {"sgd", make_sgd},
    {"adam", make_adam<Adam>},
    {"adamw", make_adam<AdamW>},
}};

constexpr std::array<Row<SchedulerMaker>, 11> kSchedulers = {{
    {"constant", make_constant},
    {"steplr", make_step},
    {"multisteplr", make_multi_step},
    {"linearlr", make_linear},
    {"exponentiallr", make_exponential},
    {"polynomiallr", make_polynomial},
    {"cosineannealinglr", make_cosine},
    {"cosineannealingwarmrestarts", make_restarts},
    {"cycliclr", make_cyclic},
    {"onecyclelr", make_one_cycle},
    {"reducelronplateau", make_plateau},
}};

template <class Maker>
std::vector<std::string> names_of(std::span<const Row<Maker>> rows) {
  std::vector<std::string> names;
  for (const Row<Maker>& row : rows) {
    names.emplace_back(row.name);
  }
  return names;
}

template <class Maker>
Maker find_maker(
    std::span<const Row<Maker>> rows,
    std::string_view name,
    std::string_view what) {
  std::string lower(name);
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const Row<Maker>& row : rows) {
    if (row.name == lower) {
      return row.make;
    }
  }
  const std::vector<std::string> names = names_of(rows);
  const std::string near = nearest(lower, names);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "optim.create",
       .message = format(
           "unknown {} '{}', expected one of {}",
           what,
           escape(name),
           join(names, ", ")),
       .hint = near.empty() ? "" : format("did you mean '{}'?", near)});
}

// A key that no row above has, and whose it is.
constexpr std::array<std::array<std::string_view, 2>, 15> kSchedulerMarks = {{
    {"anneal_epochs", "SWALR"},
    {"_milestones", "SequentialLR"},
    {"_schedulers", "ChainedScheduler"},
    {"max_lrs", "CyclicLR"},
    {"T_max", "cosineannealinglr"},
    {"T_0", "CosineAnnealingWarmRestarts"},
    {"milestones", "multisteplr"},
    {"step_size", "steplr"},
    {"total_steps", "onecyclelr"},
    {"lr_lambdas", "LambdaLR"},
    {"start_factor", "LinearLR"},
    {"power", "PolynomialLR"},
    {"patience", "reducelronplateau"},
    {"total_iters", "constant"},
    {"gamma", "ExponentialLR"},
}};

} // namespace

std::vector<std::string> optimizer_names() {
  return names_of(std::span<const Row<OptimizerMaker>>(kOptimizers));
}

std::unique_ptr<Optimizer> make_optimizer(
    std::string_view name,
    Params params,
    const OptimizerOptions& options) {
  return find_maker(
      std::span<const Row<OptimizerMaker>>(kOptimizers),
      name,
      "optimizer")(std::move(params), options);
}

std::vector<std::string> scheduler_names() {
  return names_of(std::span<const Row<SchedulerMaker>>(kSchedulers));
}

std::unique_ptr<Scheduler> make_scheduler(
    std::string_view name,
    const OptimizerRef& optimizer,
    const SchedulerOptions& options) {
  return find_maker(
      std::span<const Row<SchedulerMaker>>(kSchedulers),
      name,
      "scheduler")(optimizer, options);
}

std::string saved_optimizer(const ckpt::Value& state) {
  const ckpt::Value* groups = state.find("param_groups");
  const std::vector<ckpt::Value>* list =
      groups == nullptr ? nullptr : groups->elements();
  return list == nullptr || list->empty()
             ? std::string()
             : internal::kind_of_options(list->front());
}

std::string saved_scheduler(const ckpt::Value& state) {
  for (const auto& [key, name] : kSchedulerMarks) {
    if (state.find(key) != nullptr) {
      return std::string(name);
    }
  }
  return {};
}

} // namespace lockstep
