// SPDX-License-Identifier: BSD-3-Clause
//
// The formula is Python's, term by term.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/schedules.h"

namespace lockstep {
namespace {

constexpr std::string_view kSwaRate = "swa_lr";
constexpr std::string_view kCosine = "cos";

void check_swa_options(const SWALROptions& options) {
  if (options.anneal_strategy != kCosine &&
      options.anneal_strategy != "linear") {
    internal::refuse_schedule(format(
        "anneal_strategy must be one of 'cos' or 'linear', instead got {}",
        options.anneal_strategy));
  }
  if (options.anneal_epochs < 0) {
    internal::refuse_schedule(format(
        "anneal_epochs must be equal or greater than 0, got {}",
        options.anneal_epochs));
  }
}

} // namespace

SWALR::SWALR(OptimizerRef optimizer, SWALROptions options)
    : Scheduler(std::move(optimizer)), options_(std::move(options)) {
  const std::vector<double> rates =
      internal::spread(kSwaRate, options_.swa_lr, groups().size());
  check_swa_options(options_);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    groups()[i].set(kSwaRate, rates[i]);
  }
  begin(options_.last_epoch);
}

double SWALR::share_after(std::int64_t epochs) const {
  const double length =
      static_cast<double>(std::max<std::int64_t>(1, options_.anneal_epochs));
  const double t = std::clamp(static_cast<double>(epochs) / length, 0.0, 1.0);
  return options_.anneal_strategy == kCosine
             ? (1 - std::cos(std::numbers::pi * t)) / 2
             : t;
}

std::vector<double> SWALR::get_lr() {
  std::int64_t step = step_count() - 1;
  if (options_.anneal_epochs == 0) {
    step = std::max<std::int64_t>(1, step);
  }
  const double before = share_after(step - 1);
  const double share = share_after(step);
  std::vector<double> rates;
  for (const ParamGroup& group : groups()) {
    const double last = group.number(kSwaRate);
    const double first =
        before == 1 ? last : (group.lr() - before * last) / (1 - before);
    rates.push_back(last * share + first * (1 - share));
  }
  return rates;
}

std::vector<ckpt::Item> SWALR::own_state() const {
  return {
      {"_anneal_strategy", options_.anneal_strategy},
      {"anneal_epochs", options_.anneal_epochs}};
}

void SWALR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "SWALR state");
  SWALROptions loaded = options_;
  loaded.anneal_strategy = reader.text("_anneal_strategy");
  loaded.anneal_epochs = reader.integer("anneal_epochs");
  check_swa_options(loaded);
  options_ = std::move(loaded);
}

} // namespace lockstep
