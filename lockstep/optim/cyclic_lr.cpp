// SPDX-License-Identifier: BSD-3-Clause
//
// Python's formulas, term by term: the order of operations decides the last
// bit.
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/schedules.h"

namespace lockstep {

using internal::refuse_schedule;
using internal::spread;

CyclicLR::CyclicLR(OptimizerRef optimizer, const CyclicLROptions& options)
    : Scheduler(std::move(optimizer)), scale_fn_(options.scale_fn) {
  const std::size_t count = groups().size();
  const std::vector<double> base_lrs =
      spread("base_lr", options.base_lr, count);
  cycle_.max_lrs = spread("max_lr", options.max_lr, count);
  const std::int64_t down =
      options.step_size_down.value_or(options.step_size_up);
  if (options.step_size_up <= 0 || down < 0) {
    refuse_schedule(format(
        "Expected positive step_size_up and step_size_down, but got {} and {}",
        options.step_size_up,
        down));
  }
  cycle_.total_size = static_cast<double>(options.step_size_up + down);
  cycle_.step_ratio =
      static_cast<double>(options.step_size_up) / cycle_.total_size;
  const bool is_by_cycle =
      options.mode == "triangular" || options.mode == "triangular2";
  if (!is_by_cycle && options.mode != "exp_range" && !scale_fn_) {
    refuse_schedule("mode is invalid and scale_fn is None");
  }
  cycle_.mode = options.mode;
  cycle_.gamma = options.gamma;
  cycle_.scale_mode = scale_fn_     ? options.scale_mode
                      : is_by_cycle ? "cycle"
                                    : "iterations";
  cycle_.cycle_momentum = options.cycle_momentum;
  if (options.cycle_momentum) {
    set_momenta(options);
  }
  if (options.last_epoch == -1) {
    go_to(-1, base_lrs);
  }
  begin(options.last_epoch);
  set_base_lrs(base_lrs);
}

void CyclicLR::set_momenta(const CyclicLROptions& options) {
  const std::size_t count = groups().size();
  cycle_.use_beta1 = internal::uses_beta1(groups()[0]);
  cycle_.base_momentums = spread("base_momentum", options.base_momentum, count);
  cycle_.max_momentums = spread("max_momentum", options.max_momentum, count);
  if (options.last_epoch != -1) {
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    ParamGroup& group = groups()[i];
    internal::set_momentum(group, cycle_.use_beta1, cycle_.max_momentums[i]);
    group.set("max_momentum", cycle_.max_momentums[i]);
    group.set("base_momentum", cycle_.base_momentums[i]);
  }
}

/// Factor of the height in cycle `cycle`.
double CyclicLR::scale(std::int64_t cycle) const {
  const std::int64_t x = cycle_.scale_mode == "cycle" ? cycle : last_epoch();
  if (scale_fn_) {
    return scale_fn_(x);
  }
  if (cycle_.mode == "triangular2") {
    return 1 / std::pow(2.0, static_cast<double>(x - 1));
  }
  return cycle_.mode == "exp_range"
             ? std::pow(cycle_.gamma, static_cast<double>(x))
             : 1.0;
}

std::vector<double> CyclicLR::get_lr() {
  const double done = static_cast<double>(last_epoch()) / cycle_.total_size;
  const double cycle = std::floor(1 + done);
  const double x = 1.0 + done - cycle;
  const double height = x <= cycle_.step_ratio
                            ? x / cycle_.step_ratio
                            : (x - 1) / (cycle_.step_ratio - 1);
  const double factor = scale(static_cast<std::int64_t>(cycle));
  std::vector<double> lrs = base_lrs();
  for (std::size_t i = 0; i < lrs.size(); ++i) {
    const double rise = (cycle_.max_lrs[i] - lrs[i]) * height;
    lrs[i] = lrs[i] + rise * factor;
  }
  for (std::size_t i = 0; cycle_.cycle_momentum && i < lrs.size(); ++i) {
    const double max_momentum = cycle_.max_momentums[i];
    const double fall = (max_momentum - cycle_.base_momentums[i]) * height;
    internal::set_momentum(
        groups()[i],
        cycle_.use_beta1,
        max_momentum - fall * factor);
  }
  return lrs;
}

std::vector<ckpt::Item> CyclicLR::own_state() const {
  std::vector<ckpt::Item> state = {
      {"max_lrs", cycle_.max_lrs},
      {"total_size", cycle_.total_size},
      {"step_ratio", cycle_.step_ratio},
      {"mode", cycle_.mode},
      {"gamma", cycle_.gamma},
      {"scale_mode", cycle_.scale_mode},
      {"cycle_momentum", cycle_.cycle_momentum}};
  if (cycle_.cycle_momentum) {
    state.emplace_back("use_beta1", cycle_.use_beta1);
    state.emplace_back("base_momentums", cycle_.base_momentums);
    state.emplace_back("max_momentums", cycle_.max_momentums);
  }
  return state;
}

std::vector<ckpt::Item> CyclicLR::late_state() const {
  return {{"_scale_fn_custom", ckpt::Value()}};
}

void CyclicLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "CyclicLR state");
  const std::size_t count = groups().size();
  Cycle loaded;
  loaded.max_lrs = reader.per_group("max_lrs", count);
  loaded.total_size = reader.number("total_size");
  loaded.step_ratio = reader.number("step_ratio");
  loaded.mode = reader.text("mode");
  loaded.gamma = reader.number("gamma");
  loaded.scale_mode = reader.text("scale_mode");
  loaded.cycle_momentum = reader.flag("cycle_momentum");
  if (loaded.cycle_momentum) {
    loaded.use_beta1 = reader.flag("use_beta1");
    loaded.base_momentums = reader.per_group("base_momentums", count);
    loaded.max_momentums = reader.per_group("max_momentums", count);
    if (loaded.use_beta1 != internal::uses_beta1(groups()[0])) {
      reader.refuse(
          "use_beta1",
          "what the optimizer has, momentum or betas",
          reader.at("use_beta1"));
    }
  }
  if (reader.has("_scale_fn_custom") &&
      !reader.at("_scale_fn_custom").is_none()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "optim.load",
         .message = format(
             "'_scale_fn_custom' of CyclicLR state: expected None, got '{}', "
             "the attributes of a callable object",
             reader.at("_scale_fn_custom").type_name()),
         .hint = "give a scale_fn that begins with them, and set the entry to "
                 "None"});
  }
  cycle_ = std::move(loaded);
}

} // namespace lockstep
