// SPDX-License-Identifier: BSD-3-Clause
//
// The recursive formulas are Python's, term by term: the order of operations
// decides the last bit.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep {

namespace {

constexpr double kPi = std::numbers::pi;

void require_positive(std::string_view name, std::int64_t value) {
  if (value <= 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.schedule",
         .message =
             format("Expected positive integer {}, but got {}", name, value)});
  }
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

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options)
    : Scheduler(optimizer), options_(options) {
  require_positive("step_size", options.step_size);
  begin(options.last_epoch);
}

std::vector<double> StepLR::get_lr() {
  const bool is_decay =
      last_epoch() != 0 && last_epoch() % options_.step_size == 0;
  return scaled_lrs(is_decay ? options_.gamma : 1.0);
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
    Optimizer& optimizer,
    const MultiStepLROptions& options)
    : Scheduler(optimizer), gamma_(options.gamma) {
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

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options)
    : Scheduler(optimizer), options_(options) {
  if (!(options.factor >= 0 && options.factor <= 1)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.schedule",
         .message = "Constant multiplicative factor expected to be between 0 "
                    "and 1."});
  }
  begin(options.last_epoch);
}

std::vector<double> ConstantLR::get_lr() {
  if (last_epoch() == 0) {
    return scaled_lrs(options_.factor);
  }
  return scaled_lrs(
      last_epoch() == options_.total_iters ? 1.0 / options_.factor : 1.0);
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

CosineAnnealingLR::CosineAnnealingLR(
    Optimizer& optimizer,
    const CosineAnnealingLROptions& options)
    : Scheduler(optimizer), options_(options) {
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
