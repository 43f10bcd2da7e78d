// SPDX-License-Identifier: BSD-3-Clause
#include "tests/optim/schedule_rows.h"

#include <limits>
#include <utility>

namespace lockstep::test {

using ckpt::Value;

Value schedule(const char* kind, std::initializer_list<ckpt::Item> args) {
  return Value::dict({{"kind", kind}, {"args", Value::dict(args)}});
}

std::vector<ScheduleRow> simple_rows() {
  return {
      {"step", schedule("StepLR", {{"step_size", 4}, {"gamma", 0.3}}), 20},
      {"multi_step",
       schedule(
           "MultiStepLR",
           {{"milestones", Value::list({7, 2, 7})}, {"gamma", 0.3}}),
       20},
      {"constant", schedule("ConstantLR", {}), 16},
      {"constant_options",
       schedule("ConstantLR", {{"factor", 0.7}, {"total_iters", 3}}),
       10},
      {"linear", schedule("LinearLR", {}), 16},
      {"linear_options",
       schedule(
           "LinearLR",
           {{"start_factor", 0.9}, {"end_factor", 0.05}, {"total_iters", 7}}),
       21},
      {"linear_to_zero",
       schedule("LinearLR", {{"start_factor", 1.0}, {"end_factor", 0.0}}),
       15},
      {"exponential", schedule("ExponentialLR", {{"gamma", 0.93}}), 30},
      {"polynomial", schedule("PolynomialLR", {}), 15},
      {"polynomial_options",
       schedule("PolynomialLR", {{"total_iters", 9}, {"power", 2.3}}),
       27},
      {"polynomial_flat",
       schedule("PolynomialLR", {{"total_iters", 4}, {"power", 0.0}}),
       8},
      {"swa", schedule("SWALR", {{"swa_lr", 0.02}}), 15},
      {"swa_linear",
       schedule(
           "SWALR",
           {{"swa_lr", 0.3},
            {"anneal_epochs", 4},
            {"anneal_strategy", "linear"}}),
       7},
      {"swa_at_once",
       schedule("SWALR", {{"swa_lr", 0.05}, {"anneal_epochs", 0}}),
       4},
      {"cosine",
       schedule("CosineAnnealingLR", {{"T_max", 6}, {"eta_min", 0.003}}),
       36},
      {"one_cycle",
       schedule("OneCycleLR", {{"max_lr", 0.3}, {"total_steps", 20}}),
       20},
      {"lambda",
       schedule("LambdaLR", {{"lr_lambda", Value::list({"decay"})}}),
       20},
      {"multiplicative",
       schedule("MultiplicativeLR", {{"lr_lambda", Value::list({"decay"})}}),
       20},
  };
}

Value restarts(std::initializer_list<ckpt::Item> args) {
  return schedule("CosineAnnealingWarmRestarts", args);
}

std::vector<ScheduleRow> restart_rows() {
  return {
      {"restarts", restarts({{"T_0", 4}}), 14},
      {"restarts_longer",
       restarts({{"T_0", 3}, {"T_mult", 2}, {"eta_min", 0.002}}),
       26},
      {"restarts_between",
       restarts({{"T_0", 3}}),
       8,
       {0.25, 0.5, 2.75, 3.5, 7, 8.25, 9}},
      {"restarts_between_longer",
       restarts({{"T_0", 3}, {"T_mult", 2}, {"eta_min", 0.002}}),
       12,
       {0.5, 1, 2.9, 3, 3.5, 9, 21.125, 4, 100, 1.5}},
  };
}

Value cyclic(std::initializer_list<ckpt::Item> more) {
  Value args =
      Value::dict({{"base_lr", 0.01}, {"max_lr", 0.13}, {"step_size_up", 3}});
  for (const ckpt::Item& item : more) {
    args.set(item.first, item.second);
  }
  return Value::dict({{"kind", "CyclicLR"}, {"args", std::move(args)}});
}

std::vector<ScheduleRow> cyclic_rows() {
  return {
      {"cyclic", cyclic({}), 20},
      {"cyclic_fixed_momentum", cyclic({{"cycle_momentum", false}}), 20},
      {"cyclic_down",
       cyclic(
           {{"step_size_down", 5},
            {"mode", "triangular2"},
            {"base_momentum", 0.7},
            {"max_momentum", 0.95}}),
       26},
      {"cyclic_exp",
       cyclic({{"mode", "exp_range"}, {"gamma", 0.97}, {"step_size_down", 2}}),
       20},
      {"cyclic_function",
       cyclic({{"scale_fn", "decay"}, {"scale_mode", "iterations"}}),
       20},
      {"cyclic_cycle_function",
       cyclic({{"scale_fn", "stairs"}, {"mode", "mine"}}),
       26},
  };
}

Value plateau(std::initializer_list<ckpt::Item> more) {
  // Python's default of min_lr is an int.
  Value args = Value::dict({{"min_lr", 0.0}});
  for (const ckpt::Item& item : more) {
    args.set(item.first, item.second);
  }
  return Value::dict(
      {{"kind", "ReduceLROnPlateau"}, {"args", std::move(args)}});
}

std::vector<ScheduleRow> plateau_rows() {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Value> falling = {
      1.0, 0.9, 0.9, 0.89999, 0.95, 0.5, 0.5, 0.5, 0.5, 0.4999, 0.6, 0.7,
      0.1, 0.2, 0.2, 0.2,     0.2,  0.2, 0.2, 0.2, 0.2, 0.2,    inf, 0.2};
  const std::vector<Value> rising = {
      -1.0,
      -0.9,
      -1.0,
      0.0,
      0.0,
      0.0,
      0.5,
      0.4,
      0.3,
      0.51,
      0.5,
      0.5,
      0.5,
      0.5,
      0.5,
      0.5};
  return {
      {"plateau", plateau({{"patience", 2}}), 24, falling},
      {"plateau_patient", plateau({}), 24, falling},
      {"plateau_rel_max",
       plateau({{"mode", "max"}, {"patience", 1}, {"factor", 0.5}}),
       16,
       rising},
      {"plateau_abs_max",
       plateau(
           {{"mode", "max"},
            {"threshold_mode", "abs"},
            {"threshold", 0.02},
            {"patience", 0},
            {"cooldown", 2}}),
       16,
       rising},
      {"plateau_abs_min",
       plateau({{"threshold_mode", "abs"}, {"patience", 0}, {"eps", 1e-3}}),
       24,
       falling},
  };
}

Value composed(
    const char* kind,
    std::vector<Value> schedulers,
    std::initializer_list<Value> milestones) {
  Value args = Value::dict({});
  if (milestones.size() > 0) {
    args.set("milestones", Value::list(milestones));
  }
  return Value::dict(
      {{"kind", kind},
       {"args", args},
       {"schedulers", ckpt::List{.items = std::move(schedulers)}}});
}

namespace {

/// All that can begin at a milestone, one after the other.
Value all_in_turn() {
  return composed(
      "SequentialLR",
      {schedule("LinearLR", {}),
       schedule("StepLR", {{"step_size", 2}}),
       schedule("MultiStepLR", {{"milestones", Value::list({0, 1, 2})}}),
       schedule("ConstantLR", {{"total_iters", 2}}),
       schedule("ExponentialLR", {{"gamma", 0.8}}),
       schedule("PolynomialLR", {{"total_iters", 3}, {"power", 1.7}}),
       schedule("CosineAnnealingLR", {{"T_max", 3}, {"eta_min", 0.004}}),
       restarts({{"T_0", 2}, {"T_mult", 2}}),
       schedule("LambdaLR", {{"lr_lambda", Value::list({"stairs"})}}),
       schedule("MultiplicativeLR", {{"lr_lambda", Value::list({"decay"})}}),
       cyclic({{"cycle_momentum", false}}),
       schedule("LinearLR", {{"start_factor", 0.2}}),
       schedule("ConstantLR", {{"total_iters", 0}})},
      {4, 8, 12, 16, 20, 24, 28, 34, 38, 42, 46, 50});
}

} // namespace

std::vector<ScheduleRow> composed_rows() {
  const Value linear = schedule("LinearLR", {{"total_iters", 4}});
  const Value decay = schedule("ExponentialLR", {{"gamma", 0.9}});
  const Value cosine = schedule("CosineAnnealingLR", {{"T_max", 5}});
  const Value chain = composed("ChainedScheduler", {decay, linear});
  const Value sequence = composed("SequentialLR", {linear, decay}, {3});
  return {
      {"sequential", sequence, 12},
      {"sequential_three",
       composed("SequentialLR", {linear, decay, cosine}, {4, 9}),
       30},
      {"sequential_all", all_in_turn(), 56},
      {"sequential_at_once",
       composed("SequentialLR", {linear, decay, cosine}, {0, 5}),
       16},
      {"sequential_twice",
       composed("SequentialLR", {linear, decay, cosine}, {5, 5}),
       16},
      {"sequential_backwards",
       composed("SequentialLR", {linear, decay, cosine}, {6, 3}),
       16},
      {"chained", chain, 12},
      {"chained_three",
       composed(
           "ChainedScheduler",
           {decay,
            schedule("StepLR", {{"step_size", 3}}),
            restarts({{"T_0", 4}})}),
       14},
      {"chained_sequence", composed("ChainedScheduler", {sequence, decay}), 12},
      {"sequence_of_chain", composed("SequentialLR", {chain, decay}, {4}), 12},
      {"sequence_of_sequence",
       composed("SequentialLR", {sequence, cosine}, {7}),
       20},
      {"chained_cycle", composed("ChainedScheduler", {cyclic({}), decay}), 20},
  };
}

std::vector<ScheduleRow> all_schedule_rows() {
  std::vector<ScheduleRow> all;
  for (const auto& rows :
       {simple_rows(),
        restart_rows(),
        cyclic_rows(),
        plateau_rows(),
        composed_rows()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

} // namespace lockstep::test
