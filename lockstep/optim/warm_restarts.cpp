// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/schedules.h"

namespace lockstep {

namespace {

void check_periods(const CosineAnnealingWarmRestartsOptions& options) {
  internal::require_positive("T_0", options.t_0);
  if (options.t_mult < 1) {
    internal::refuse_schedule(
        format("Expected integer T_mult >= 1, but got {}", options.t_mult));
  }
}

/// Python's `a % b` of positive numbers: an int if both are.
ckpt::Value remainder_of(const ckpt::Value& a, std::int64_t b) {
  if (const std::int64_t* whole = a.as_int()) {
    return *whole % b;
  }
  return std::fmod(*a.number(), static_cast<double>(b));
}

} // namespace

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(
    OptimizerRef optimizer,
    const CosineAnnealingWarmRestartsOptions& options)
    : Scheduler(std::move(optimizer)),
      options_(options),
      t_i_(options.t_0),
      t_cur_(options.last_epoch) {
  check_periods(options);
  begin(options.last_epoch);
}

void CosineAnnealingWarmRestarts::step(double epoch) {
  step_to(epoch);
}

void CosineAnnealingWarmRestarts::step_to(const ckpt::Value& epoch) {
  const double target = *epoch.number();
  if (!(target >= 0)) {
    internal::refuse_schedule(format(
        "Expected non-negative epoch, but got {}",
        epoch.as_int() != nullptr ? format("{}", *epoch.as_int())
                                  : shortest(target)));
  }
  const auto t_0 = static_cast<double>(options_.t_0);
  const auto t_mult = static_cast<double>(options_.t_mult);
  if (target < t_0) {
    t_i_ = options_.t_0;
    t_cur_ = epoch;
  } else if (options_.t_mult == 1) {
    t_cur_ = remainder_of(epoch, options_.t_0);
  } else {
    // The number of periods before `epoch`, as Python computes it.
    const auto n = std::trunc(
        std::log(target / t_0 * (t_mult - 1) + 1) / std::log(t_mult));
    const double factor = std::pow(t_mult, n);
    t_cur_ = target - t_0 * (factor - 1) / (t_mult - 1);
    t_i_ = options_.t_0 * static_cast<std::int64_t>(factor);
  }
  go_to(static_cast<std::int64_t>(std::floor(target)), get_lr());
}

// Python's counts no steps, and so warns of no order.
void CosineAnnealingWarmRestarts::advance(Order /*order*/) {
  if (last_epoch() < 0) {
    step_to(0);
    return;
  }
  if (const std::int64_t* whole = t_cur_.as_int()) {
    t_cur_ = *whole + 1;
  } else {
    t_cur_ = *t_cur_.number() + 1;
  }
  if (*t_cur_.number() >= static_cast<double>(t_i_)) {
    t_cur_ = remainder_of(t_cur_, t_i_);
    t_i_ *= options_.t_mult;
  }
  go_to(last_epoch() + 1, get_lr());
}

std::vector<double> CosineAnnealingWarmRestarts::get_lr() {
  const double eta_min = options_.eta_min;
  const double wave =
      1 +
      std::cos(std::numbers::pi * *t_cur_.number() / static_cast<double>(t_i_));
  std::vector<double> lrs = base_lrs();
  for (double& lr : lrs) {
    lr = eta_min + (lr - eta_min) * wave / 2;
  }
  return lrs;
}

std::vector<ckpt::Item> CosineAnnealingWarmRestarts::own_state() const {
  return {
      {"T_0", options_.t_0},
      {"T_i", t_i_},
      {"T_mult", options_.t_mult},
      {"eta_min", options_.eta_min},
      {"T_cur", t_cur_}};
}

void CosineAnnealingWarmRestarts::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(
      state,
      "CosineAnnealingWarmRestarts state");
  CosineAnnealingWarmRestartsOptions loaded = options_;
  loaded.t_0 = reader.integer("T_0");
  loaded.t_mult = reader.integer("T_mult");
  loaded.eta_min = reader.number("eta_min");
  const std::int64_t t_i = reader.integer("T_i");
  static_cast<void>(reader.number("T_cur"));
  if (loaded.t_0 <= 0 || loaded.t_mult < 1 || t_i <= 0) {
    reader.refuse("T_0", "periods above 0", reader.at("T_0"));
  }
  options_ = loaded;
  t_i_ = t_i;
  t_cur_ = reader.at("T_cur");
}

} // namespace lockstep
