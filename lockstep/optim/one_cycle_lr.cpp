// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <numbers>

#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/schedules.h"

namespace lockstep {

using internal::refuse_schedule;
using internal::require_positive;
using internal::spread;

namespace {

std::int64_t total_of(const OneCycleLROptions& options) {
  if (options.total_steps) {
    return require_positive("total_steps", *options.total_steps);
  }
  if (!options.epochs || !options.steps_per_epoch) {
    refuse_schedule(
        "You must define either total_steps OR (epochs AND steps_per_epoch)");
  }
  const std::int64_t epochs = require_positive("epochs", *options.epochs);
  return epochs * require_positive("steps_per_epoch", *options.steps_per_epoch);
}

/// PyTorch up to 2.0 saved the function itself, as the attribute
/// `_annealing_cos` of the class, or of the scheduler.
std::string saved_strategy(const ckpt::Value& state, const std::string& own) {
  const internal::StateReader reader(state, "OneCycleLR state");
  if (reader.has("_anneal_func_type")) {
    return reader.text("_anneal_func_type");
  }
  const ckpt::Object* function = reader.at("anneal_func").as_object();
  if (function == nullptr) {
    return own; // a function of the script's own
  }
  const std::vector<ckpt::Value>* args =
      function->args == nullptr ? nullptr : function->args->elements();
  const std::string_view name = args == nullptr || args->empty()
                                    ? std::string_view(function->global)
                                    : args->back().text();
  for (const char* known : {"cos", "linear"}) {
    if (name.ends_with(std::string("_annealing_") + known)) {
      return known;
    }
  }
  return own;
}

} // namespace

OneCycleLR::OneCycleLR(OptimizerRef optimizer, const OneCycleLROptions& options)
    : Scheduler(std::move(optimizer)),
      total_steps_(total_of(options)),
      anneal_strategy_(options.anneal_strategy),
      cycle_momentum_(options.cycle_momentum) {
  if (!(options.pct_start >= 0 && options.pct_start <= 1)) {
    refuse_schedule(format(
        "Expected float between 0 and 1 pct_start, but got {}",
        shortest(options.pct_start)));
  }
  if (anneal_strategy_ != "cos" && anneal_strategy_ != "linear") {
    refuse_schedule(format(
        "anneal_strategy must be one of 'cos' or 'linear', instead got {}",
        escape(anneal_strategy_)));
  }
  make_phases(options);
  set_bounds(options);
  begin(options.last_epoch);
}

std::vector<OneCycleLR::Phase> OneCycleLR::two_phases(
    double end_of_up,
    double total) {
  return {
      {.end_step = end_of_up,
       .start_lr = "initial_lr",
       .end_lr = "max_lr",
       .start_momentum = "max_momentum",
       .end_momentum = "base_momentum"},
      {.end_step = total - 1,
       .start_lr = "max_lr",
       .end_lr = "min_lr",
       .start_momentum = "base_momentum",
       .end_momentum = "max_momentum"}};
}

void OneCycleLR::make_phases(const OneCycleLROptions& options) {
  const auto total = static_cast<double>(total_steps_);
  if (!options.three_phase) {
    phases_ = two_phases(options.pct_start * total - 1, total);
    return;
  }
  const Phase up = two_phases(options.pct_start * total - 1, total).front();
  const Phase down = {
      .end_step = 2 * options.pct_start * total - 2,
      .start_lr = "max_lr",
      .end_lr = "initial_lr",
      .start_momentum = "base_momentum",
      .end_momentum = "max_momentum"};
  const Phase out = {
      .end_step = total - 1,
      .start_lr = "initial_lr",
      .end_lr = "min_lr",
      .start_momentum = "max_momentum",
      .end_momentum = "max_momentum"};
  phases_ = {up, down, out};
}

void OneCycleLR::set_bounds(const OneCycleLROptions& options) {
  const std::size_t count = groups().size();
  const std::vector<double> max_lr = spread("max_lr", options.max_lr, count);
  const bool is_start = options.last_epoch == -1;
  if (cycle_momentum_) {
    use_beta1_ = internal::uses_beta1(groups()[0]);
  }
  const auto base = spread("base_momentum", options.base_momentum, count);
  const auto max = spread("max_momentum", options.max_momentum, count);
  for (std::size_t i = 0; is_start && i < count; ++i) {
    ParamGroup& group = groups()[i];
    const double initial_lr = max_lr[i] / options.div_factor;
    group.set("initial_lr", initial_lr);
    group.set("max_lr", max_lr[i]);
    group.set("min_lr", initial_lr / options.final_div_factor);
    if (cycle_momentum_) {
      internal::set_momentum(group, use_beta1_, max[i]);
      group.set("max_momentum", max[i]);
      group.set("base_momentum", base[i]);
    }
  }
}

double OneCycleLR::anneal(double start, double end, double share) const {
  if (anneal_strategy_ == "linear") {
    return (end - start) * share + start;
  }
  const double wave = std::cos(std::numbers::pi * share) + 1;
  return end + (start - end) / 2.0 * wave;
}

std::vector<double> OneCycleLR::get_lr() {
  if (last_epoch() > total_steps_) {
    refuse_schedule(format(
        "Tried to step {} times. The specified number of total steps is {}",
        last_epoch(),
        total_steps_));
  }
  const auto step = static_cast<double>(last_epoch());
  double start_step = 0;
  std::size_t index = 0;
  while (index + 1 < phases_.size() && step > phases_[index].end_step) {
    start_step = phases_[index].end_step;
    ++index;
  }
  const Phase& phase = phases_[index];
  if (phase.end_step == start_step) {
    refuse_schedule(
        "float division by zero: a phase of the cycle has no steps");
  }
  const double share = (step - start_step) / (phase.end_step - start_step);
  std::vector<double> lrs;
  for (ParamGroup& group : groups()) {
    lrs.push_back(anneal(
        group.number(phase.start_lr),
        group.number(phase.end_lr),
        share));
    if (cycle_momentum_) {
      internal::set_momentum(
          group,
          use_beta1_,
          anneal(
              group.number(phase.start_momentum),
              group.number(phase.end_momentum),
              share));
    }
  }
  return lrs;
}

std::vector<ckpt::Item> OneCycleLR::own_state() const {
  ckpt::List phases;
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Phase& phase = phases_[i];
    // Python's last phase ends at an integer, the others at floats.
    const ckpt::Value end_step = i + 1 < phases_.size()
                                     ? ckpt::Value(phase.end_step)
                                     : ckpt::Value(total_steps_ - 1);
    phases.items.push_back(ckpt::Value::dict(
        {{"end_step", end_step},
         {"start_lr", phase.start_lr},
         {"end_lr", phase.end_lr},
         {"start_momentum", phase.start_momentum},
         {"end_momentum", phase.end_momentum}}));
  }
  std::vector<ckpt::Item> state = {
      {"total_steps", total_steps_},
      {"_schedule_phases", std::move(phases)},
      {"_anneal_func_type", anneal_strategy_},
      {"cycle_momentum", cycle_momentum_}};
  if (cycle_momentum_) {
    state.emplace_back("use_beta1", use_beta1_);
  }
  return state;
}

std::vector<OneCycleLR::Phase> OneCycleLR::saved_phases(
    const ckpt::Value& state) const {
  const internal::StateReader reader(state, "OneCycleLR state");
  std::vector<Phase> phases;
  if (!reader.has("_schedule_phases")) {
    // PyTorch up to 1.7 knew two phases, and saved their lengths.
    phases =
        two_phases(reader.number("step_size_up"), reader.number("total_steps"));
    return phases;
  }
  for (const ckpt::Value& item : reader.items("_schedule_phases")) {
    const internal::StateReader phase(item, "a phase of OneCycleLR state");
    phases.push_back(
        {.end_step = phase.number("end_step"),
         .start_lr = phase.text("start_lr"),
         .end_lr = phase.text("end_lr"),
         .start_momentum = phase.text("start_momentum"),
         .end_momentum = phase.text("end_momentum")});
  }
  return phases;
}

void OneCycleLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "OneCycleLR state");
  const std::int64_t total_steps = reader.integer("total_steps");
  const std::string strategy = saved_strategy(state, anneal_strategy_);
  const bool cycle_momentum = reader.flag("cycle_momentum");
  const bool use_beta1 = cycle_momentum && reader.flag("use_beta1");
  std::vector<Phase> phases = saved_phases(state);
  if (phases.empty() || (strategy != "cos" && strategy != "linear")) {
    reader.refuse(
        "_schedule_phases",
        "phases of a known strategy",
        ckpt::Value(strategy));
  }
  total_steps_ = total_steps;
  anneal_strategy_ = strategy;
  cycle_momentum_ = cycle_momentum;
  use_beta1_ = use_beta1;
  phases_ = std::move(phases);
}

} // namespace lockstep
