// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/optim/optim_kinds.h"

#include <algorithm>
#include <array>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt::internal {
namespace {

using enum FieldType;

constexpr std::array kSgdOptions{
    OptimField{"lr"},
    OptimField{"momentum"},
    OptimField{"dampening"},
    OptimField{"weight_decay"},
    OptimField{"nesterov", kBool}};
constexpr std::array kSgdState{OptimField{"momentum_buffer", kTensor}};
constexpr std::array<std::string_view, 9> kSgdOrder{
    "lr",
    "momentum",
    "dampening",
    "weight_decay",
    "nesterov",
    "maximize",
    "foreach",
    "differentiable",
    "fused"};

constexpr std::array kAdamOptions{
    OptimField{"lr"},
    OptimField{"betas", kFloats},
    OptimField{"eps"},
    OptimField{"weight_decay"},
    OptimField{"amsgrad", kBool}};
constexpr std::array kAdamState{
    OptimField{"step", kStep},
    OptimField{"exp_avg", kTensor},
    OptimField{"exp_avg_sq", kTensor},
    OptimField{"max_exp_avg_sq", kTensor}};
// Without decoupled_weight_decay: C++ does not say whether it was AdamW, and
// Python sets it from the class that loads.
constexpr std::array<std::string_view, 10> kAdamOrder{
    "lr",
    "betas",
    "eps",
    "weight_decay",
    "amsgrad",
    "maximize",
    "foreach",
    "capturable",
    "differentiable",
    "fused"};

constexpr std::array kRmspropOptions{
    OptimField{"lr"},
    OptimField{"alpha"},
    OptimField{"eps"},
    OptimField{"weight_decay"},
    OptimField{"momentum"},
    OptimField{"centered", kBool}};
constexpr std::array kRmspropState{
    OptimField{"step", kStep},
    OptimField{"square_avg", kTensor},
    OptimField{"momentum_buffer", kTensor},
    OptimField{"grad_avg", kTensor}};
constexpr std::array<std::string_view, 10> kRmspropOrder{
    "lr",
    "momentum",
    "alpha",
    "eps",
    "centered",
    "weight_decay",
    "capturable",
    "foreach",
    "maximize",
    "differentiable"};

constexpr std::array kAdagradOptions{
    OptimField{"lr"},
    OptimField{"lr_decay"},
    OptimField{"weight_decay"},
    OptimField{"initial_accumulator_value"},
    OptimField{"eps"}};
constexpr std::array kAdagradState{
    OptimField{"step", kStep},
    OptimField{"sum", kTensor}};
constexpr std::array<std::string_view, 9> kAdagradOrder{
    "lr",
    "lr_decay",
    "eps",
    "weight_decay",
    "initial_accumulator_value",
    "foreach",
    "maximize",
    "differentiable",
    "fused"};

constexpr std::array kLbfgsOptions{
    OptimField{"lr"},
    OptimField{"max_iter", kInt},
    OptimField{"max_eval", kMaybeInt},
    OptimField{"tolerance_grad"},
    OptimField{"tolerance_change"},
    OptimField{"history_size", kInt},
    OptimField{"line_search_fn", kMaybeText}};
// Without `al`, which each step fills anew.
constexpr std::array kLbfgsState{
    OptimField{"func_evals", kInt},
    OptimField{"n_iter", kInt},
    OptimField{"t"},
    OptimField{"prev_loss"},
    OptimField{"d", kTensor},
    OptimField{"H_diag", kTensor},
    OptimField{"prev_flat_grad", kTensor},
    OptimField{"old_dirs", kTensors},
    OptimField{"old_stps", kTensors},
    OptimField{"ro", kTensors}};
constexpr std::array<std::string_view, 7> kLbfgsOrder{
    "lr",
    "max_iter",
    "max_eval",
    "tolerance_grad",
    "tolerance_change",
    "history_size",
    "line_search_fn"};

constexpr std::array kKinds{
    OptimKind{"SGD", kSgdOptions, kSgdState, kSgdOrder},
    OptimKind{"Adam", kAdamOptions, kAdamState, kAdamOrder},
    OptimKind{"RMSprop", kRmspropOptions, kRmspropState, kRmspropOrder},
    OptimKind{"Adagrad", kAdagradOptions, kAdagradState, kAdagradOrder},
    OptimKind{"LBFGS", kLbfgsOptions, kLbfgsState, kLbfgsOrder}};

} // namespace

const OptimKind* find_optim_kind(const Dict& group) {
  const auto has = [&group](const OptimField& field) {
    return std::ranges::any_of(group.items, [&field](const Item& item) {
      const std::string* name = item.first.as_string();
      return name != nullptr && *name == field.name;
    });
  };
  const auto* row = std::ranges::find_if(kKinds, [&has](const auto& kind) {
    return std::ranges::all_of(kind.options, has);
  });
  return row == kKinds.end() ? nullptr : row;
}

std::string_view optim_name(const OptimKind& kind, const Value& group) {
  const Value* decoupled = group.find("decoupled_weight_decay");
  const bool* flag = decoupled == nullptr ? nullptr : decoupled->as_bool();
  return kind.name == "Adam" && flag != nullptr && *flag ? "AdamW" : kind.name;
}

std::string optim_kind_names() {
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const OptimKind& kind : kKinds) {
    names.emplace_back(kind.name);
  }
  return join(names, ", ");
}

Value python_default(std::string_view option) {
  const bool is_choice = option == "foreach" || option == "fused";
  return is_choice ? Value() : Value(false);
}

Error optim_error(ErrorCode code, std::string message, std::string hint) {
  return {
      .code = code,
      .op = "ckpt.optim",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = "E_OPTIMIZER"};
}

} // namespace lockstep::ckpt::internal
