// SPDX-License-Identifier: BSD-3-Clause
#include "tests/optim/schedule_cases.h"

#include <string>
#include <utility>

#include "tests/optim/schedule_rows.h"

namespace lockstep::test {

namespace {

using ckpt::Value;

/// Those that go on without a saved state: the groups know their first rates.
std::vector<ScheduleRow> resumed_rows() {
  std::vector<ScheduleRow> rows = {
      {"step", schedule("StepLR", {{"step_size", 3}, {"last_epoch", 4}}), 9},
      {"linear", schedule("LinearLR", {{"last_epoch", 2}}), 9},
      {"exponential",
       schedule("ExponentialLR", {{"gamma", 0.9}, {"last_epoch", 4}}),
       9},
      {"polynomial",
       schedule("PolynomialLR", {{"total_iters", 9}, {"last_epoch", 4}}),
       9},
      {"lambda",
       schedule(
           "LambdaLR",
           {{"lr_lambda", Value::list({"decay"})}, {"last_epoch", 4}}),
       9},
      {"multiplicative",
       schedule(
           "MultiplicativeLR",
           {{"lr_lambda", Value::list({"decay"})}, {"last_epoch", 4}}),
       9},
      {"restarts", restarts({{"T_0", 3}, {"last_epoch", 1}}), 9},
      {"cyclic", cyclic({{"last_epoch", 4}}), 9},
  };
  for (ScheduleRow& row : rows) {
    row.name += "_resumed";
  }
  return rows;
}

/// Functions for each of two groups.
std::vector<ScheduleRow> rows_of_two_groups() {
  return {
      {"lambdas",
       schedule("LambdaLR", {{"lr_lambda", Value::list({"stairs", "decay"})}}),
       20},
      {"multiplicatives",
       schedule(
           "MultiplicativeLR",
           {{"lr_lambda", Value::list({"half", "decay"})}}),
       20},
      {"cyclics",
       schedule(
           "CyclicLR",
           {{"base_lr", Value::list({0.01, 0.02})},
            {"max_lr", Value::list({0.1, 0.3})},
            {"step_size_up", 4},
            {"base_momentum", Value::list({0.8, 0.7})},
            {"max_momentum", Value::list({0.9, 0.85})}}),
       26},
      {"plateaus",
       plateau({{"patience", 0}, {"min_lr", Value::list({0.02, 0.01})}}),
       6,
       {0.5, 0.5, 0.5, 0.5, 0.5, 0.5}},
  };
}

void add(
    std::vector<ScheduleCase>& cases,
    const std::vector<ScheduleRow>& rows,
    const ScheduleCase& base) {
  for (const ScheduleRow& row : rows) {
    ScheduleCase made = base;
    made.name = row.name + base.name;
    made.schedule = row.schedule;
    made.steps = row.steps;
    made.middle = row.steps * 2 / 5;
    made.arguments = row.arguments;
    cases.push_back(std::move(made));
  }
}

ScheduleCase one_group() {
  return {.name = "_one", .groups = {{{"lr", 0.1}, {"momentum", 0.9}}}};
}

ScheduleCase two_groups() {
  return {
      .name = "_two",
      .groups = {{{"lr", 0.1}, {"momentum", 0.9}}, {{"lr", 0.037}}}};
}

ScheduleCase adam_groups() {
  return {
      .name = "_adam",
      .optimizer = "Adam",
      .groups = {{{"lr", 0.1}}, {{"lr", 0.037}}}};
}

ScheduleCase resumed_groups() {
  return {
      .groups = {
          {{"lr", 0.05}, {"momentum", 0.9}, {"initial_lr", 0.1}},
          {{"lr", 0.011}, {"initial_lr", 0.037}}}};
}

/// LibTorch's optimizers, whose groups the schedulers change.
void add_torchs(std::vector<ScheduleCase>& cases) {
  const std::vector<ScheduleRow> simple = {
      {"step_torch",
       schedule("StepLR", {{"step_size", 3}, {"gamma", 0.3}}),
       10},
      {"lambda_torch",
       schedule("LambdaLR", {{"lr_lambda", Value::list({"stairs"})}}),
       10},
      {"plateau_torch",
       plateau({{"patience", 0}}),
       6,
       {0.5, 0.5, 0.5, 0.5, 0.5, 0.5}},
      {"sequential_torch",
       composed(
           "SequentialLR",
           {schedule("LinearLR", {}),
            schedule("ExponentialLR", {{"gamma", 0.9}})},
           {4}),
       12}};
  const std::vector<ScheduleRow> with_momentum = {
      {"cyclic_torch", cyclic({}), 20},
      {"one_cycle_torch",
       schedule("OneCycleLR", {{"max_lr", 0.3}, {"total_steps", 20}}),
       20}};
  for (const char* name : {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad"}) {
    const ScheduleCase base = {
        .name = std::string("_") + name,
        .optimizer = name,
        .is_torchs = true,
        .groups = {{{"lr", 0.1}}, {{"lr", 0.037}}}};
    add(cases, simple, base);
    if (base.optimizer != "Adagrad") {
      add(cases, with_momentum, base);
    }
  }
}

ScheduleCase refused(std::string name, Value bad, std::int64_t steps = 0) {
  ScheduleCase made = two_groups();
  made.name = std::move(name);
  made.schedule = std::move(bad);
  made.steps = steps;
  return made;
}

std::vector<ScheduleCase> simple_refusals() {
  return {
      refused("constant", schedule("ConstantLR", {{"factor", 1.5}})),
      refused("linear_start", schedule("LinearLR", {{"start_factor", 0.0}})),
      refused("linear_high", schedule("LinearLR", {{"start_factor", 1.1}})),
      refused("linear_end", schedule("LinearLR", {{"end_factor", -0.1}})),
      refused(
          "polynomial_pole",
          schedule("PolynomialLR", {{"total_iters", 2}, {"power", -1.0}}),
          2),
      refused(
          "lambdas",
          schedule(
              "LambdaLR",
              {{"lr_lambda", Value::list({"half", "half", "half"})}})),
      refused(
          "multiplicatives",
          schedule("MultiplicativeLR", {{"lr_lambda", Value::list({})}})),
      refused(
          "no_function",
          schedule("MultiplicativeLR", {{"lr_lambda", Value::list({"none"})}})),
      refused(
          "no_first_rate",
          schedule("ExponentialLR", {{"gamma", 0.9}, {"last_epoch", 2}})),
  };
}

ScheduleCase no_momentum(Value bad) {
  const std::string name(bad.find("kind")->text());
  ScheduleCase made = refused("no_momentum_" + name, std::move(bad));
  made.optimizer = "Adagrad";
  made.is_torchs = true;
  made.groups = {{{"lr", 0.1}}};
  return made;
}

std::vector<ScheduleCase> cycle_refusals() {
  const Value two = Value::list({0.1, 0.2, 0.3});
  return {
      refused("restarts_t_0", restarts({{"T_0", 0}})),
      refused("restarts_t_mult", restarts({{"T_0", 2}, {"T_mult", 0}})),
      refused(
          "cyclic_base",
          schedule("CyclicLR", {{"base_lr", two}, {"max_lr", 0.1}})),
      refused(
          "cyclic_max",
          schedule("CyclicLR", {{"base_lr", 0.1}, {"max_lr", two}})),
      refused("cyclic_mode", cyclic({{"mode", "square"}})),
      refused("cyclic_base_momentum", cyclic({{"base_momentum", two}})),
      refused("cyclic_max_momentum", cyclic({{"max_momentum", two}})),
      refused("plateau_factor", plateau({{"factor", 1.0}})),
      refused("plateau_mode", plateau({{"mode", "mean"}})),
      refused("plateau_threshold", plateau({{"threshold_mode", "any"}})),
      refused(
          "plateau_rates",
          schedule("ReduceLROnPlateau", {{"min_lr", two}})),
      refused("plateau_no_metric", plateau({}), 1),
      no_momentum(cyclic({})),
      no_momentum(
          schedule("OneCycleLR", {{"max_lr", 0.3}, {"total_steps", 20}})),
  };
}

ScheduleCase with_argument(ScheduleCase test_case, Value argument) {
  test_case.arguments = {std::move(argument)};
  test_case.steps = 1;
  return test_case;
}

std::vector<ScheduleCase> composed_refusals() {
  const Value linear = schedule("LinearLR", {});
  return {
      refused("sequential_none", composed("SequentialLR", {}, {1})),
      refused(
          "sequential_milestones",
          composed("SequentialLR", {linear, linear}, {1, 2})),
      refused(
          "sequential_plateau",
          composed("SequentialLR", {linear, plateau({})}, {1})),
      refused("chained_none", composed("ChainedScheduler", {})),
      refused(
          "chained_plateau",
          composed("ChainedScheduler", {linear, plateau({})})),
      with_argument(refused("restarts_epoch", restarts({{"T_0", 2}})), -1),
      with_argument(refused("restarts_float", restarts({{"T_0", 2}})), -0.5),
  };
}

} // namespace

const std::vector<ScheduleCase>& schedule_cases() {
  static const std::vector<ScheduleCase> kCases = [] {
    std::vector<ScheduleCase> cases;
    add(cases, all_schedule_rows(), one_group());
    add(cases, all_schedule_rows(), two_groups());
    add(cases, cyclic_rows(), adam_groups());
    add(cases, rows_of_two_groups(), two_groups());
    add(cases, resumed_rows(), resumed_groups());
    add_torchs(cases);
    return cases;
  }();
  return kCases;
}

const std::vector<ScheduleCase>& refused_cases() {
  static const std::vector<ScheduleCase> kCases = [] {
    std::vector<ScheduleCase> cases = simple_refusals();
    for (const auto& more : {cycle_refusals(), composed_refusals()}) {
      cases.insert(cases.end(), more.begin(), more.end());
    }
    return cases;
  }();
  return kCases;
}

Value table_value(const std::vector<ScheduleCase>& cases) {
  ckpt::List list;
  for (const ScheduleCase& one : cases) {
    ckpt::List groups;
    for (const std::vector<NamedOption>& options : one.groups) {
      ckpt::Dict group;
      for (const NamedOption& option : options) {
        group.items.emplace_back(option.first, option.second);
      }
      groups.items.emplace_back(std::move(group));
    }
    list.items.push_back(Value::dict(
        {{"name", one.name},
         {"optimizer", one.optimizer},
         {"groups", std::move(groups)},
         {"schedule", one.schedule},
         {"steps", one.steps},
         {"middle", one.middle},
         {"arguments", ckpt::List{.items = one.arguments}}}));
  }
  return list;
}

} // namespace lockstep::test
