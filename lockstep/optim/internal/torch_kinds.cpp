// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/torch_kinds.h"

#include <array>
#include <cmath>
#include <tuple>
#include <typeinfo>

#include <ATen/ops/full_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/checks.h"
#include "lockstep/optim/internal/kinds.h"
#include "lockstep/optim/internal/state_reader.h"

namespace lockstep::internal {

namespace {

using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;
using BetaTuple = std::tuple<double, double>;

// Below, `visit` is called with each of Python's names that LibTorch has and a
// reference to its value; state in Python's order.

struct SGDFields {
  using Optimizer = torch::optim::SGD;
  using Options = torch::optim::SGDOptions;
  using State = torch::optim::SGDParamState;
  static constexpr const OptimizerKind& kKind = kSGD;

  static std::vector<NamedOption> defaults() {
    return python_options(SGDOptions());
  }
  static void options(auto& options, const auto& visit) {
    visit("lr", options.lr());
    visit("momentum", options.momentum());
    visit("dampening", options.dampening());
    visit("weight_decay", options.weight_decay());
    visit("nesterov", options.nesterov());
  }
  static void state(auto& state, const auto& visit) {
    visit("momentum_buffer", state.momentum_buffer());
  }
};

/// Adam and AdamW differ in their classes alone.
struct AdamFieldsBase {
  static void options(auto& options, const auto& visit) {
    visit("lr", options.lr());
    visit("betas", options.betas());
    visit("eps", options.eps());
    visit("weight_decay", options.weight_decay());
    visit("amsgrad", options.amsgrad());
  }
  static void state(auto& state, const auto& visit) {
    visit("step", state.step());
    visit("exp_avg", state.exp_avg());
    visit("exp_avg_sq", state.exp_avg_sq());
    visit("max_exp_avg_sq", state.max_exp_avg_sq());
  }
};

struct AdamFields : AdamFieldsBase {
  using Optimizer = torch::optim::Adam;
  using Options = torch::optim::AdamOptions;
  using State = torch::optim::AdamParamState;
  static constexpr const OptimizerKind& kKind = kAdam;

  static std::vector<NamedOption> defaults() {
    return python_options(AdamOptions(), /*is_decoupled=*/false);
  }
};

struct AdamWFields : AdamFieldsBase {
  using Optimizer = torch::optim::AdamW;
  using Options = torch::optim::AdamWOptions;
  using State = torch::optim::AdamWParamState;
  static constexpr const OptimizerKind& kKind = kAdamW;

  static std::vector<NamedOption> defaults() {
    return python_options(AdamOptions(), /*is_decoupled=*/true);
  }
};

struct RMSpropFields {
  using Optimizer = torch::optim::RMSprop;
  using Options = torch::optim::RMSpropOptions;
  using State = torch::optim::RMSpropParamState;
  static constexpr const OptimizerKind& kKind = kRMSprop;

  static std::vector<NamedOption> defaults() {
    return rmsprop_defaults();
  }
  static void options(auto& options, const auto& visit) {
    visit("lr", options.lr());
    visit("momentum", options.momentum());
    visit("alpha", options.alpha());
    visit("eps", options.eps());
    visit("centered", options.centered());
    visit("weight_decay", options.weight_decay());
  }
  static void state(auto& state, const auto& visit) {
    visit("step", state.step());
    visit("square_avg", state.square_avg());
    visit("momentum_buffer", state.momentum_buffer());
    visit("grad_avg", state.grad_avg());
  }
};

struct AdagradFields {
  using Optimizer = torch::optim::Adagrad;
  using Options = torch::optim::AdagradOptions;
  using State = torch::optim::AdagradParamState;
  static constexpr const OptimizerKind& kKind = kAdagrad;

  static std::vector<NamedOption> defaults() {
    return adagrad_defaults();
  }
  static void options(auto& options, const auto& visit) {
    visit("lr", options.lr());
    visit("lr_decay", options.lr_decay());
    visit("eps", options.eps());
    visit("weight_decay", options.weight_decay());
    visit("initial_accumulator_value", options.initial_accumulator_value());
  }
  static void state(auto& state, const auto& visit) {
    visit("step", state.step());
    visit("sum", state.sum());
  }
};

template <class T, class Base>
T& as(Base& object) {
  auto* const typed = dynamic_cast<T*>(&object);
  if (typed == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.state_dict",
         .message = format(
             "a parameter group or state of the optimizer: expected {}, got {}",
             c10::demangle(typeid(T).name()),
             c10::demangle(typeid(object).name()))});
  }
  return *typed;
}

ckpt::Value python_option(double value) {
  return value;
}
ckpt::Value python_option(bool value) {
  return value;
}
ckpt::Value python_option(const BetaTuple& value) {
  return ckpt::Value::tuple({std::get<0>(value), std::get<1>(value)});
}

void take(const ParamGroup& group, std::string_view name, double& value) {
  value = group.number(name);
}
void take(const ParamGroup& group, std::string_view name, bool& value) {
  value = group.flag(name);
}
void take(const ParamGroup& group, std::string_view, BetaTuple& value) {
  value = group.betas();
}

at::Tensor python_state(std::int64_t step) {
  return at::scalar_tensor(step, step_dtype(/*is_fused=*/false));
}
at::Tensor python_state(const at::Tensor& tensor) {
  return tensor;
}

void take(const at::Tensor& saved, std::int64_t& step) {
  const auto count = saved.item<double>();
  constexpr double kLimit = 9007199254740992.0; // all below are exact
  if (!(count >= 0 && count < kLimit && std::trunc(count) == count)) {
    mismatch(format(
        "'step' of the loaded state: expected a count, got {}",
        shortest(count)));
  }
  step = static_cast<std::int64_t>(count);
}
void take(const at::Tensor& saved, at::Tensor& tensor) {
  tensor = saved;
}

/// `foreach` and `fused` are no reason: the step computes the same.
constexpr std::array<std::string_view, 4> kFollowedOnlyByPython = {
    "maximize",
    "capturable",
    "differentiable",
    "decoupled_weight_decay"};

template <class Fields>
void check(const ParamGroup& group) {
  const ParamGroup standard = {.options = Fields::defaults()};
  for (const std::string_view name : kFollowedOnlyByPython) {
    if (group.flag(name) != standard.flag(name)) {
      raise(
          {.code = ErrorCode::kUnsupported,
           .op = "optim.load",
           .message = format(
               "option '{}' of a loaded parameter group: torch::optim::{} "
               "cannot follow it; expected {}, got {}",
               name,
               Fields::kKind.name,
               standard.flag(name) ? "True" : "False",
               group.flag(name) ? "True" : "False"),
           .hint = name == "decoupled_weight_decay"
                       ? "load the file into torch::optim::AdamW"
                       : ""});
    }
  }
  Fields::kKind.check(group);
}

template <class Fields>
bool is_kind_of(const torch::optim::Optimizer& optimizer) {
  return dynamic_cast<const typename Fields::Optimizer*>(&optimizer) != nullptr;
}

template <class Fields>
std::vector<NamedOption> options_of(const OptimizerOptions& options) {
  ParamGroup group = {.options = Fields::defaults()};
  Fields::options(
      as<const typename Fields::Options>(options),
      [&](std::string_view name, const auto& value) {
        group.set(name, python_option(value));
      });
  return std::move(group.options);
}

template <class Fields>
void set_options(OptimizerOptions& options, const ParamGroup& group) {
  Fields::options(
      as<typename Fields::Options>(options),
      [&](std::string_view name, auto& value) { take(group, name, value); });
}

template <class Fields>
void read_state(const OptimizerParamState& state, ParamState& entry) {
  Fields::state(
      as<const typename Fields::State>(state),
      [&](std::string_view name, const auto& value) {
        const at::Tensor tensor = python_state(value);
        if (tensor.defined()) {
          entry[name] = tensor;
        }
      });
}

template <class Fields>
std::unique_ptr<OptimizerParamState> make_state(ParamState& entry) {
  auto state = std::make_unique<typename Fields::State>();
  Fields::state(*state, [&](std::string_view name, auto& value) {
    take(entry[name], value);
  });
  return state;
}

std::unique_ptr<OptimizerParamState> first_adagrad_state(
    const torch::optim::Optimizer& optimizer,
    const at::Tensor& param) {
  const auto& options =
      as<const torch::optim::AdagradOptions>(optimizer.defaults());
  auto state = std::make_unique<torch::optim::AdagradParamState>();
  state->sum(at::full_like(
      param.detach(),
      options.initial_accumulator_value(),
      at::MemoryFormat::Preserve));
  return state;
}

/// A copy, as LibTorch makes one for another group, is LibTorch's class again:
/// without the memory.
template <class Fields>
struct Remembering final : Fields::Options {
  Remembering(const typename Fields::Options& options, Memory kept)
      : Fields::Options(options), memory(std::move(kept)) {}
  Memory memory;
};

template <class Fields>
Memory memory_in(const OptimizerOptions& options) {
  const auto* const own = dynamic_cast<const Remembering<Fields>*>(&options);
  return own == nullptr ? nullptr : own->memory;
}

template <class Fields>
std::unique_ptr<OptimizerOptions> remember(
    const OptimizerOptions& options,
    Memory memory) {
  if (typeid(options) != typeid(typename Fields::Options)) {
    return nullptr;
  }
  return std::make_unique<Remembering<Fields>>(
      as<const typename Fields::Options>(options),
      std::move(memory));
}

template <class Fields>
TorchKind kind_of() {
  TorchKind kind = {
      .rules = Fields::kKind,
      .is_kind_of = is_kind_of<Fields>,
      .options = options_of<Fields>,
      .set_options = set_options<Fields>,
      .read_state = read_state<Fields>,
      .make_state = make_state<Fields>,
      .memory = memory_in<Fields>,
      .remembering = remember<Fields>};
  kind.rules.check = check<Fields>;
  return kind;
}

const std::array<TorchKind, 5>& all_kinds() {
  static const auto kinds = [] {
    std::array<TorchKind, 5> rows = {
        kind_of<SGDFields>(),
        kind_of<AdamFields>(),
        kind_of<AdamWFields>(),
        kind_of<RMSpropFields>(),
        kind_of<AdagradFields>()};
    rows.back().first_state = first_adagrad_state;
    return rows;
  }();
  return kinds;
}

} // namespace

const TorchKind& torch_kind(
    const torch::optim::Optimizer& optimizer,
    std::string_view op) {
  std::vector<std::string> names;
  for (const TorchKind& kind : all_kinds()) {
    if (kind.is_kind_of(optimizer)) {
      return kind;
    }
    names.emplace_back(kind.rules.name);
  }
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = std::string(op),
       .message = format(
           "state of {} is not supported; expected one of torch::optim::{}",
           c10::demangle(typeid(optimizer).name()),
           join(names, ", "))});
}

} // namespace lockstep::internal
