// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/kinds.h"

#include <array>

#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/checks.h"

namespace lockstep::internal {

namespace {

constexpr std::array<std::string_view, 1> kSGDState = {"momentum_buffer"};
constexpr std::array<std::string_view, 4> kAdamState = {
    "step",
    "exp_avg",
    "exp_avg_sq",
    "max_exp_avg_sq"};
constexpr std::array<std::string_view, 4> kRMSpropState = {
    "step",
    "square_avg",
    "momentum_buffer",
    "grad_avg"};
constexpr std::array<std::string_view, 2> kAdagradState = {"step", "sum"};

void check_rate(const ParamGroup& group) {
  check_not_negative(group, "lr", "Invalid learning rate: {}");
}

void check_eps(const ParamGroup& group) {
  check_not_negative(group, "eps", "Invalid epsilon value: {}");
}

void check_momentum(const ParamGroup& group) {
  check_not_negative(group, "momentum", "Invalid momentum value: {}");
}

void check_decay(const ParamGroup& group) {
  check_not_negative(group, "weight_decay", "Invalid weight_decay value: {}");
}

void check_capturable(const ParamGroup& group) {
  if (group.flag("capturable")) {
    refuse_option("`capturable` is not supported: no graph capture");
  }
}

void check_sgd(const ParamGroup& group) {
  check_rate(group);
  check_momentum(group);
  check_decay(group);
  const double dampening = group.number("dampening");
  if (group.flag("nesterov") &&
      (group.number("momentum") <= 0 || dampening != 0)) {
    refuse_option("Nesterov momentum requires a momentum and zero dampening");
  }
  check_common(group);
}

void check_adam(const ParamGroup& group) {
  check_rate(group);
  check_eps(group);
  const auto [beta1, beta2] = group.betas();
  for (const auto& [index, beta] : {std::pair(0, beta1), std::pair(1, beta2)}) {
    if (!(beta >= 0 && beta < 1)) {
      refuse_option(format(
          "Invalid beta parameter at index {}: {}",
          index,
          shortest(beta)));
    }
  }
  check_decay(group);
  for (const char* name : {"amsgrad", "decoupled_weight_decay"}) {
    static_cast<void>(group.flag(name)); // checks its type
  }
  check_capturable(group);
  check_common(group);
}

void check_rmsprop(const ParamGroup& group) {
  check_rate(group);
  check_eps(group);
  check_momentum(group);
  check_decay(group);
  check_not_negative(group, "alpha", "Invalid alpha value: {}");
  static_cast<void>(group.flag("centered")); // checks its type
  check_capturable(group);
  check_common(group);
}

void check_adagrad(const ParamGroup& group) {
  check_rate(group);
  check_not_negative(group, "lr_decay", "Invalid lr_decay value: {}");
  check_decay(group);
  check_not_negative(
      group,
      "initial_accumulator_value",
      "Invalid initial_accumulator_value value: {}");
  check_eps(group);
  check_common(group);
}

// What files of older PyTorch versions lack, in the order in which Python adds
// it.

void complete_sgd(ParamGroup& group) {
  const std::array<NamedOption, 5> added = {{
      {"nesterov", false},
      {"maximize", false},
      {"foreach", ckpt::None()},
      {"differentiable", false},
      {"fused", false},
  }};
  set_missing(group, added);
}

void complete_adam(ParamGroup& group) {
  const std::array<NamedOption, 7> added = {{
      {"amsgrad", false},
      {"maximize", false},
      {"foreach", ckpt::None()},
      {"capturable", false},
      {"differentiable", false},
      {"decoupled_weight_decay", false},
      {"fused", ckpt::None()},
  }};
  set_missing(group, added);
}

void complete_adamw(ParamGroup& group) {
  complete_adam(group);
  group.set("decoupled_weight_decay", true);
}

void complete_rmsprop(ParamGroup& group) {
  const std::array<NamedOption, 6> added = {{
      {"momentum", 0.0},
      {"centered", false},
      {"foreach", ckpt::None()},
      {"maximize", false},
      {"differentiable", false},
      {"capturable", false},
  }};
  set_missing(group, added);
}

void complete_adagrad(ParamGroup& group) {
  const std::array<NamedOption, 4> added = {{
      {"foreach", ckpt::None()},
      {"maximize", false},
      {"differentiable", false},
      {"fused", ckpt::None()},
  }};
  set_missing(group, added);
}

bool sgd_needs(std::string_view /*key*/, const ParamGroup& /*group*/) {
  return false; // a missing momentum buffer is made at the next step
}

bool adam_needs(std::string_view key, const ParamGroup& group) {
  return key != "max_exp_avg_sq" || group.flag("amsgrad");
}

bool rmsprop_needs(std::string_view key, const ParamGroup& group) {
  if (key == "momentum_buffer") {
    return group.number("momentum") > 0;
  }
  return key != "grad_avg" || group.flag("centered");
}

bool adagrad_needs(std::string_view /*key*/, const ParamGroup& /*group*/) {
  return true;
}

} // namespace

constexpr OptimizerKind kSGD = {
    .name = "SGD",
    .state_keys = kSGDState,
    .check = check_sgd,
    .complete_loaded = complete_sgd,
    .needs = sgd_needs};

constexpr OptimizerKind kAdam = {
    .name = "Adam",
    .state_keys = kAdamState,
    .check = check_adam,
    .complete_loaded = complete_adam,
    .needs = adam_needs};

constexpr OptimizerKind kAdamW = {
    .name = "AdamW",
    .state_keys = kAdamState,
    .check = check_adam,
    .complete_loaded = complete_adamw,
    .needs = adam_needs};

constexpr OptimizerKind kRMSprop = {
    .name = "RMSprop",
    .state_keys = kRMSpropState,
    .check = check_rmsprop,
    .complete_loaded = complete_rmsprop,
    .needs = rmsprop_needs};

constexpr OptimizerKind kAdagrad = {
    .name = "Adagrad",
    .state_keys = kAdagradState,
    .check = check_adagrad,
    .complete_loaded = complete_adagrad,
    .needs = adagrad_needs};

std::vector<NamedOption> python_options(const SGDOptions& options) {
  return {
      {"lr", options.lr},
      {"momentum", options.momentum},
      {"dampening", options.dampening},
      {"weight_decay", options.weight_decay},
      {"nesterov", options.nesterov},
      {"maximize", options.maximize},
      {"foreach", ckpt::None()},
      {"differentiable", false},
      {"fused", optional_flag(options.fused)}};
}

std::vector<NamedOption> python_options(
    const AdamOptions& options,
    bool is_decoupled) {
  const double default_decay = is_decoupled ? 1e-2 : 0.0;
  return {
      {"lr", options.lr},
      {"betas",
       ckpt::Value::tuple({options.betas.first, options.betas.second})},
      {"eps", options.eps},
      {"weight_decay", options.weight_decay.value_or(default_decay)},
      {"amsgrad", options.amsgrad},
      {"maximize", options.maximize},
      {"foreach", ckpt::None()},
      {"capturable", false},
      {"differentiable", false},
      {"fused", optional_flag(options.fused)},
      {"decoupled_weight_decay", is_decoupled}};
}

std::vector<NamedOption> rmsprop_defaults() {
  return {
      {"lr", 1e-2},
      {"momentum", 0.0},
      {"alpha", 0.99},
      {"eps", 1e-8},
      {"centered", false},
      {"weight_decay", 0.0},
      {"capturable", false},
      {"foreach", ckpt::None()},
      {"maximize", false},
      {"differentiable", false}};
}

std::vector<NamedOption> adagrad_defaults() {
  return {
      {"lr", 1e-2},
      {"lr_decay", 0.0},
      {"eps", 1e-10},
      {"weight_decay", 0.0},
      {"initial_accumulator_value", 0.0},
      {"foreach", ckpt::None()},
      {"maximize", false},
      {"differentiable", false},
      {"fused", ckpt::None()}};
}

} // namespace lockstep::internal
