// SPDX-License-Identifier: BSD-3-Clause
#include "tests/optim/oracle_cases.h"

#include "lockstep/optim/optimizers.h"
#include "tests/optim/make_schedule.h"

namespace lockstep::test {

namespace {

using Options = std::vector<NamedOption>;
using ckpt::Value;

Options with(Options options, const Options& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

OracleCase sgd(std::string name, const Options& options) {
  return {
      .name = std::move(name),
      .optimizer = "SGD",
      .first = with({{"lr", 0.1}}, options),
      .second = with({{"lr", 0.03}}, options)};
}

OracleCase
adam(std::string name, const Options& options, std::string optimizer = "Adam") {
  return {
      .name = std::move(name),
      .optimizer = std::move(optimizer),
      .first = with({{"lr", 0.01}}, options),
      .second = with({{"lr", 0.002}, {"eps", 1e-6}}, options)};
}

OracleCase scheduled(OracleCase base, std::string scheduler, Value schedule) {
  base.name += "_" + scheduler;
  base.scheduler = std::move(scheduler);
  base.schedule = std::move(schedule);
  return base;
}

std::vector<OracleCase> optimizer_cases() {
  const Value betas = Value::tuple({0.8, 0.99});
  std::vector<OracleCase> cases = {
      sgd("sgd", {}),
      sgd("sgd_momentum", {{"momentum", 0.9}}),
      sgd("sgd_nesterov",
          {{"momentum", 0.9}, {"nesterov", true}, {"weight_decay", 5e-4}}),
      sgd("sgd_plain_nesterov", {{"momentum", 0.7}, {"nesterov", true}}),
      sgd("sgd_dampening", {{"momentum", 0.9}, {"dampening", 0.3}}),
      sgd("sgd_decay", {{"weight_decay", 1e-3}}),
      sgd("sgd_maximize",
          {{"momentum", 0.9}, {"weight_decay", 1e-3}, {"maximize", true}}),
      adam("adam", {}),
      adam("adam_decay", {{"weight_decay", 0.1}, {"betas", betas}}),
      adam("adam_amsgrad", {{"amsgrad", true}, {"maximize", true}}),
      adam("adamw", {}, "AdamW"),
      adam(
          "adamw_amsgrad",
          {{"weight_decay", 0.2}, {"amsgrad", true}},
          "AdamW"),
  };
  const std::size_t count = cases.size();
  for (std::size_t i = 0; i < count; ++i) {
    OracleCase fused = cases[i];
    fused.name += "_fused";
    fused.first.emplace_back("fused", true);
    fused.second.emplace_back("fused", true);
    cases.push_back(std::move(fused));
  }
  return cases;
}

void add_scheduled(std::vector<OracleCase>& cases, const OracleCase& base) {
  cases.push_back(scheduled(
      base,
      "StepLR",
      Value::dict({{"step_size", 2}, {"gamma", 0.5}})));
  cases.push_back(scheduled(
      base,
      "MultiStepLR",
      Value::dict(
          {{"milestones", Value::list({1, 7, 3, 3})}, {"gamma", 0.3}})));
  cases.push_back(scheduled(
      base,
      "ConstantLR",
      Value::dict({{"factor", 0.3}, {"total_iters", 4}})));
  cases.push_back(scheduled(
      base,
      "CosineAnnealingLR",
      Value::dict({{"T_max", 4}, {"eta_min", 0.001}})));
  cases.push_back(scheduled(
      base,
      "OneCycleLR",
      Value::dict({{"max_lr", Value::list({0.2, 0.1})}, {"total_steps", 12}})));
  OracleCase three_phase = scheduled(
      base,
      "OneCycleLR",
      Value::dict(
          {{"max_lr", Value::list({0.2})},
           {"epochs", 4},
           {"steps_per_epoch", 5},
           {"anneal_strategy", "linear"},
           {"three_phase", true},
           {"base_momentum", Value::list({0.7})},
           {"max_momentum", Value::list({0.9})},
           {"div_factor", 10.0},
           {"final_div_factor", 100.0},
           {"pct_start", 0.25}}));
  three_phase.name += "_three_phase";
  cases.push_back(std::move(three_phase));
  OracleCase fixed_momentum = scheduled(
      base,
      "OneCycleLR",
      Value::dict(
          {{"max_lr", Value::list({0.2})},
           {"total_steps", 10},
           {"cycle_momentum", false}}));
  fixed_momentum.name += "_fixed_momentum";
  cases.push_back(std::move(fixed_momentum));
}

Value to_dict(const Options& options) {
  ckpt::Dict dict;
  for (const NamedOption& option : options) {
    dict.items.emplace_back(option.first, option.second);
  }
  return dict;
}

/// Schedules of a usual length.
void add_long(std::vector<OracleCase>& cases, const OracleCase& base) {
  const std::size_t count = cases.size();
  cases.push_back(scheduled(
      base,
      "StepLR",
      Value::dict({{"step_size", 30}, {"gamma", 0.1}})));
  cases.push_back(scheduled(
      base,
      "MultiStepLR",
      Value::dict(
          {{"milestones", Value::list({60, 120, 160})}, {"gamma", 0.2}})));
  cases.push_back(
      scheduled(base, "CosineAnnealingLR", Value::dict({{"T_max", 200}})));
  cases.push_back(scheduled(
      base,
      "OneCycleLR",
      Value::dict({{"max_lr", Value::list({0.4})}, {"total_steps", 200}})));
  for (std::size_t i = count; i < cases.size(); ++i) {
    cases[i].name += "_long";
  }
}

} // namespace

const std::vector<OracleCase>& oracle_cases() {
  static const std::vector<OracleCase> kCases = [] {
    std::vector<OracleCase> cases = optimizer_cases();
    add_scheduled(cases, sgd("sgd_momentum", {{"momentum", 0.9}}));
    add_scheduled(cases, adam("adam", {}));
    add_long(cases, sgd("sgd_momentum", {{"momentum", 0.9}}));
    return cases;
  }();
  return kCases;
}

Value cases_value(const std::vector<OracleCase>& cases) {
  ckpt::List list;
  for (const OracleCase& test_case : cases) {
    list.items.push_back(Value::dict(
        {{"name", test_case.name},
         {"optimizer", test_case.optimizer},
         {"scheduler", test_case.scheduler},
         {"groups",
          Value::list({to_dict(test_case.first), to_dict(test_case.second)})},
         {"schedule", test_case.schedule}}));
  }
  return list;
}

std::unique_ptr<Optimizer> make_case_optimizer(
    const OracleCase& test_case,
    const std::vector<at::Tensor>& params) {
  std::vector<ParamGroup> groups = {
      {.params = {params[0], params[1], params[2]}, .options = test_case.first},
      {.params = {params[3], params[4], params[5]},
       .options = test_case.second}};
  if (test_case.optimizer == "SGD") {
    return std::make_unique<SGD>(std::move(groups));
  }
  if (test_case.optimizer == "Adam") {
    return std::make_unique<Adam>(std::move(groups));
  }
  return std::make_unique<AdamW>(std::move(groups));
}

std::shared_ptr<Scheduler> make_case_scheduler(
    const OracleCase& test_case,
    Optimizer& optimizer) {
  return test_case.scheduler.empty() ? nullptr
                                     : make_schedule(
                                           test_case.scheduler,
                                           test_case.schedule,
                                           optimizer);
}

} // namespace lockstep::test
