// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/schedules.h"

namespace lockstep {

namespace {

/// What any metric is better than.
double worst(const std::string& mode) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return mode == "min" ? kInfinity : -kInfinity;
}

void check_modes(const std::string& mode, const std::string& threshold_mode) {
  if (mode != "min" && mode != "max") {
    internal::refuse_schedule(format("mode {} is unknown!", escape(mode)));
  }
  if (threshold_mode != "rel" && threshold_mode != "abs") {
    internal::refuse_schedule(
        format("threshold mode {} is unknown!", escape(threshold_mode)));
  }
}

} // namespace

ReduceLROnPlateau::ReduceLROnPlateau(
    OptimizerRef optimizer,
    const ReduceLROnPlateauOptions& options)
    : Scheduler(std::move(optimizer)),
      options_(options),
      min_lrs_(options.min_lr),
      best_(worst(options.mode)) {
  if (options.factor >= 1.0) {
    internal::refuse_schedule("Factor should be < 1.0.");
  }
  const std::size_t count = groups().size();
  if (min_lrs_.size() == 1) {
    default_min_lr_ = min_lrs_[0];
    min_lrs_.assign(count, *default_min_lr_);
  }
  if (min_lrs_.size() != count) {
    internal::refuse_schedule(
        format("expected {} min_lrs, got {}", count, min_lrs_.size()));
  }
  check_modes(options.mode, options.threshold_mode);
  set_position(0, scaled_lrs(1.0));
}

void ReduceLROnPlateau::advance(Order /*order*/) {
  internal::refuse_schedule(
      "ReduceLROnPlateau.step() missing 1 required positional argument: "
      "'metrics'",
      "call step(metric) of the ReduceLROnPlateau itself");
}

void ReduceLROnPlateau::step(double metrics) {
  if (is_better(metrics)) {
    best_ = metrics;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    reduce();
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  set_position(last_epoch() + 1, scaled_lrs(1.0));
}

void ReduceLROnPlateau::reduce() {
  std::vector<ParamGroup>& all = groups();
  if (min_lrs_.size() != all.size()) {
    if (!default_min_lr_) {
      internal::refuse_schedule(
          format(
              "The number of param groups in the `optimizer` ({}) differs from "
              "when `ReduceLROnPlateau` was initialized ({}), usually due to a "
              "new param group being added to the optimizer.",
              all.size(),
              min_lrs_.size()),
          "give one min_lr for all groups, or make the scheduler after the "
          "group is added");
    }
    min_lrs_.assign(all.size(), *default_min_lr_);
  }
  std::vector<double> rates = scaled_lrs(1.0);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double lower = std::max(rates[i] * options_.factor, min_lrs_[i]);
    if (rates[i] - lower > options_.eps) {
      rates[i] = lower;
    }
  }
  go_to(last_epoch(), rates);
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double threshold = options_.threshold;
  if (options_.mode == "min") {
    return options_.threshold_mode == "rel" ? metric < best_ * (1.0 - threshold)
                                            : metric < best_ - threshold;
  }
  return options_.threshold_mode == "rel" ? metric > best_ * (threshold + 1.0)
                                          : metric > best_ + threshold;
}

ckpt::Value ReduceLROnPlateau::state_dict() const {
  return ckpt::Value::dict(
      {{"factor", options_.factor},
       {"default_min_lr", default_min_lr_},
       {"min_lrs", min_lrs_},
       {"patience", options_.patience},
       {"cooldown", options_.cooldown},
       {"eps", options_.eps},
       {"last_epoch", last_epoch()},
       {"_last_lr", get_last_lr()},
       {"mode_worse", worst(options_.mode)},
       {"mode", options_.mode},
       {"threshold", options_.threshold},
       {"threshold_mode", options_.threshold_mode},
       {"best", best_},
       {"cooldown_counter", cooldown_counter_},
       {"num_bad_epochs", num_bad_epochs_}});
}

void ReduceLROnPlateau::load_state_dict(const ckpt::Value& state) {
  const internal::StateReader reader(state, "ReduceLROnPlateau state");
  ReduceLROnPlateauOptions loaded = options_;
  loaded.patience = reader.integer("patience");
  loaded.factor = reader.number("factor");
  loaded.cooldown = reader.integer("cooldown");
  loaded.eps = reader.number("eps");
  loaded.mode = reader.text("mode");
  loaded.threshold = reader.number("threshold");
  loaded.threshold_mode = reader.text("threshold_mode");
  if (loaded.mode != "min" && loaded.mode != "max") {
    reader.refuse("mode", "'min' or 'max'", reader.at("mode"));
  }
  if (loaded.threshold_mode != "rel" && loaded.threshold_mode != "abs") {
    reader.refuse(
        "threshold_mode",
        "'rel' or 'abs'",
        reader.at("threshold_mode"));
  }
  std::vector<double> min_lrs = reader.numbers("min_lrs");
  // Older PyTorch versions saved none.
  std::optional<double> default_min_lr = default_min_lr_;
  if (reader.has("default_min_lr")) {
    default_min_lr = reader.at("default_min_lr").is_none()
                         ? std::nullopt
                         : std::optional(reader.number("default_min_lr"));
  }
  const double best = reader.number("best");
  const std::int64_t cooldown_counter = reader.integer("cooldown_counter");
  const std::int64_t num_bad_epochs = reader.integer("num_bad_epochs");
  set_position(
      reader.integer("last_epoch"),
      reader.has("_last_lr") ? reader.per_group("_last_lr", groups().size())
                             : scaled_lrs(1.0));
  options_ = std::move(loaded);
  min_lrs_ = std::move(min_lrs);
  default_min_lr_ = default_min_lr;
  best_ = best;
  cooldown_counter_ = cooldown_counter;
  num_bad_epochs_ = num_bad_epochs;
}

} // namespace lockstep
