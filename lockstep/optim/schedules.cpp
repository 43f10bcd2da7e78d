// SPDX-License-Identifier: BSD-3-Clause
//
// The recursive formulas are Python's, term by term: the order of operations
// decides the last bit.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep {

using internal::refuse_schedule;
using internal::require_positive;

namespace {

constexpr double kPi = std::numbers::pi;

/// Each of `rates` times `factor`.
std::vector<double> times(std::vector<double> rates, double factor) {
  for (double& rate : rates) {
    rate *= factor;
  }
  return rates;
}

/// Epochs and how often they were named, in the order of first mention.
using Milestones = std::vector<std::pair<std::int64_t, std::int64_t>>;

void add_milestone(
    Milestones& milestones,
    std::int64_t epoch,
    std::int64_t count) {
  const auto found = std::ranges::find_if(milestones, [&](const auto& entry) {
    return entry.first == epoch;
  });
  if (found == milestones.end()) {
    milestones.emplace_back(epoch, count);
  } else {
    found->second += count;
  }
}

} // namespace

StepLR::StepLR(OptimizerRef optimizer, const StepLROptions& options)
    : Scheduler(std::move(optimizer)), options_(options) {
  require_positive("step_size", options.step_size);
  begin(options.last_epoch);
}

std::vector<double> StepLR::get_lr() {
  const bool is_decay =
      last_epoch() != 0 && last_epoch() % options_.step_size == 0;
  return scaled_lrs(is_decay ? options_.gamma : 1.0);
}

std::vector<double> StepLR::closed_form_lr() {
  const std::int64_t decays = last_epoch() / options_.step_size;
  return times(
      base_lrs(),
      std::pow(options_.gamma, static_cast<double>(decays)));
}

std::vector<ckpt::Item> StepLR::own_state() const {
  return {{"step_size", options_.step_size}, {"gamma", options_.gamma}};
}

void StepLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "StepLR state");
  StepLROptions loaded = options_;
  loaded.step_size = reader.integer("step_size");
  loaded.gamma = reader.number("gamma");
  require_positive("step_size", loaded.step_size);
  options_ = loaded;
}

MultiStepLR::MultiStepLR(
    OptimizerRef optimizer,
    const MultiStepLROptions& options)
    : Scheduler(std::move(optimizer)), gamma_(options.gamma) {
  for (const std::int64_t epoch : options.milestones) {
    add_milestone(milestones_, epoch, 1);
  }
  begin(options.last_epoch);
}

std::vector<double> MultiStepLR::get_lr() {
  for (const auto& [epoch, count] : milestones_) {
    if (epoch == last_epoch()) {
      return scaled_lrs(std::pow(gamma_, static_cast<double>(count)));
    }
  }
  return scaled_lrs(1.0);
}

std::vector<double> MultiStepLR::closed_form_lr() {
  std::int64_t passed = 0;
  for (const auto& [epoch, count] : milestones_) {
    passed += epoch <= last_epoch() ? count : 0;
  }
  return times(base_lrs(), std::pow(gamma_, static_cast<double>(passed)));
}

std::vector<ckpt::Item> MultiStepLR::own_state() const {
  ckpt::Dict counter = {.kind = ckpt::Dict::Kind::kCounter};
  for (const auto& [epoch, count] : milestones_) {
    counter.items.emplace_back(epoch, count);
  }
  return {{"milestones", std::move(counter)}, {"gamma", gamma_}};
}

void MultiStepLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "MultiStepLR state");
  const double gamma = reader.number("gamma");
  Milestones milestones;
  // PyTorch 1.0 saved a list.
  if (reader.at("milestones").elements() != nullptr) {
    for (const ckpt::Value& epoch : reader.items("milestones")) {
      if (epoch.as_int() == nullptr) {
        reader.refuse("milestones", "integers", epoch);
      }
      add_milestone(milestones, *epoch.as_int(), 1);
    }
  } else {
    for (const auto& [epoch, count] : reader.dict("milestones").items) {
      if (epoch.as_int() == nullptr || count.as_int() == nullptr) {
        reader.refuse("milestones", "integers", epoch);
      }
      add_milestone(milestones, *epoch.as_int(), *count.as_int());
    }
  }
  milestones_ = std::move(milestones);
  gamma_ = gamma;
}

ConstantLR::ConstantLR(OptimizerRef optimizer, const ConstantLROptions& options)
    : Scheduler(std::move(optimizer)), options_(options) {
  if (!(options.factor >= 0 && options.factor <= 1)) {
    refuse_schedule(
        "Constant multiplicative factor expected to be between 0 and 1.");
  }
  begin(options.last_epoch);
}

std::vector<double> ConstantLR::get_lr() {
  if (last_epoch() == 0) {
    return scaled_lrs(options_.factor);
  }
  if (last_epoch() != options_.total_iters) {
    return scaled_lrs(1.0);
  }
  if (options_.factor == 0) {
    refuse_schedule("float division by zero: ConstantLR cannot undo factor 0");
  }
  return scaled_lrs(1.0 / options_.factor);
}

std::vector<double> ConstantLR::closed_form_lr() {
  const double is_over = last_epoch() >= options_.total_iters ? 1.0 : 0.0;
  return times(base_lrs(), options_.factor + is_over * (1 - options_.factor));
}

std::vector<ckpt::Item> ConstantLR::own_state() const {
  return {{"factor", options_.factor}, {"total_iters", options_.total_iters}};
}

void ConstantLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "ConstantLR state");
  ConstantLROptions loaded = options_;
  loaded.factor = reader.number("factor");
  loaded.total_iters = reader.integer("total_iters");
  options_ = loaded;
}

LinearLR::LinearLR(OptimizerRef optimizer, const LinearLROptions& options)
    : Scheduler(std::move(optimizer)), options_(options) {
  if (!(options.start_factor > 0 && options.start_factor <= 1)) {
    refuse_schedule(
        "Starting multiplicative factor expected to be greater than 0 and less "
        "or equal to 1.");
  }
  if (!(options.end_factor >= 0 && options.end_factor <= 1)) {
    refuse_schedule(
        "Ending multiplicative factor expected to be between 0 and 1.");
  }
  begin(options.last_epoch);
}

std::vector<double> LinearLR::get_lr() {
  if (last_epoch() == 0) {
    return scaled_lrs(options_.start_factor);
  }
  if (is_initial() || last_epoch() > options_.total_iters) {
    return scaled_lrs(1.0);
  }
  const double rise = options_.end_factor - options_.start_factor;
  const auto done = static_cast<double>(last_epoch() - 1);
  const double before =
      static_cast<double>(options_.total_iters) * options_.start_factor +
      done * rise;
  return scaled_lrs(1.0 + rise / before);
}

std::vector<double> LinearLR::closed_form_lr() {
  if (options_.total_iters == 0) {
    refuse_schedule("division by zero: total_iters of LinearLR is 0");
  }
  const auto total = static_cast<double>(options_.total_iters);
  const auto done =
      static_cast<double>(std::min(options_.total_iters, last_epoch()));
  const double rise = options_.end_factor - options_.start_factor;
  return times(base_lrs(), options_.start_factor + rise * done / total);
}

std::vector<ckpt::Item> LinearLR::own_state() const {
  return {
      {"start_factor", options_.start_factor},
      {"end_factor", options_.end_factor},
      {"total_iters", options_.total_iters}};
}

void LinearLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "LinearLR state");
  LinearLROptions loaded = options_;
  loaded.start_factor = reader.number("start_factor");
  loaded.end_factor = reader.number("end_factor");
  loaded.total_iters = reader.integer("total_iters");
  options_ = loaded;
}

ExponentialLR::ExponentialLR(
    OptimizerRef optimizer,
    const ExponentialLROptions& options)
    : Scheduler(std::move(optimizer)), gamma_(options.gamma) {
  begin(options.last_epoch);
}

std::vector<double> ExponentialLR::get_lr() {
  return scaled_lrs(is_initial() ? 1.0 : gamma_);
}

std::vector<double> ExponentialLR::closed_form_lr() {
  return times(base_lrs(), std::pow(gamma_, static_cast<double>(last_epoch())));
}

std::vector<ckpt::Item> ExponentialLR::own_state() const {
  return {{"gamma", gamma_}};
}

void ExponentialLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "ExponentialLR state");
  for (const std::string_view other : {"step_size", "milestones", "max_lrs"}) {
    if (reader.has(other)) {
      internal::mismatch(
          format("ExponentialLR state: '{}' is of another scheduler", other));
    }
  }
  gamma_ = reader.number("gamma");
}

PolynomialLR::PolynomialLR(
    OptimizerRef optimizer,
    const PolynomialLROptions& options)
    : Scheduler(std::move(optimizer)), options_(options) {
  begin(options.last_epoch);
}

std::vector<double> PolynomialLR::get_lr() {
  if (is_initial() || last_epoch() > options_.total_iters) {
    return scaled_lrs(1.0);
  }
  const auto total = static_cast<double>(options_.total_iters);
  const auto epoch = static_cast<double>(last_epoch());
  const double ratio = (1.0 - epoch / total) / (1.0 - (epoch - 1) / total);
  if (ratio == 0 && options_.power < 0) {
    refuse_schedule("0.0 cannot be raised to a negative power");
  }
  return scaled_lrs(std::pow(ratio, options_.power));
}

std::vector<double> PolynomialLR::closed_form_lr() {
  if (options_.total_iters == 0) {
    refuse_schedule("division by zero: total_iters of PolynomialLR is 0");
  }
  const auto total = static_cast<double>(options_.total_iters);
  const auto done =
      static_cast<double>(std::min(options_.total_iters, last_epoch()));
  const double factor = std::pow(1.0 - done / total, options_.power);
  return times(base_lrs(), factor);
}

std::vector<ckpt::Item> PolynomialLR::own_state() const {
  return {{"total_iters", options_.total_iters}, {"power", options_.power}};
}

void PolynomialLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "PolynomialLR state");
  PolynomialLROptions loaded = options_;
  loaded.total_iters = reader.integer("total_iters");
  loaded.power = reader.number("power");
  options_ = loaded;
}

CosineAnnealingLR::CosineAnnealingLR(
    OptimizerRef optimizer,
    const CosineAnnealingLROptions& options)
    : Scheduler(std::move(optimizer)), options_(options) {
  require_positive("T_max", options.t_max);
  begin(options.last_epoch);
}

std::vector<double> CosineAnnealingLR::get_lr() {
  if (is_initial()) {
    return scaled_lrs(1.0);
  }
  const double eta_min = options_.eta_min;
  const auto t_max = static_cast<double>(options_.t_max);
  const auto epoch = static_cast<double>(last_epoch());
  std::vector<double> lrs = scaled_lrs(1.0);
  if (step_count() == 1 && last_epoch() > 0) {
    for (std::size_t i = 0; i < lrs.size(); ++i) {
      lrs[i] = eta_min + (base_lrs()[i] - eta_min) *
                             (1 + std::cos(epoch * kPi / t_max)) / 2;
    }
  } else if ((last_epoch() - 1 - options_.t_max) % (2 * options_.t_max) == 0) {
    // The lowest point: the ratio below would be 0 / 0.
    for (std::size_t i = 0; i < lrs.size(); ++i) {
      lrs[i] += (base_lrs()[i] - eta_min) * (1 - std::cos(kPi / t_max)) / 2;
    }
  } else {
    const double ratio = (1 + std::cos(kPi * epoch / t_max)) /
                         (1 + std::cos(kPi * (epoch - 1) / t_max));
    for (double& lr : lrs) {
      lr = ratio * (lr - eta_min) + eta_min;
    }
  }
  return lrs;
}

std::vector<double> CosineAnnealingLR::closed_form_lr() {
  const double eta_min = options_.eta_min;
  const double wave = 1 + std::cos(
                              kPi * static_cast<double>(last_epoch()) /
                              static_cast<double>(options_.t_max));
  std::vector<double> lrs = base_lrs();
  for (double& lr : lrs) {
    lr = eta_min + (lr - eta_min) * wave / 2;
  }
  return lrs;
}

std::vector<ckpt::Item> CosineAnnealingLR::own_state() const {
  return {{"T_max", options_.t_max}, {"eta_min", options_.eta_min}};
}

void CosineAnnealingLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "CosineAnnealingLR state");
  CosineAnnealingLROptions loaded = options_;
  loaded.t_max = reader.integer("T_max");
  loaded.eta_min = reader.number("eta_min");
  require_positive("T_max", loaded.t_max);
  options_ = loaded;
}

} // namespace lockstep
