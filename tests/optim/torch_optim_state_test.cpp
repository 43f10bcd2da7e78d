// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/optim/support.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using testing::HasSubstr;
namespace to = torch::optim;

/// An optimizer after two steps.
template <class T, class Options>
struct Stepped {
  explicit Stepped(const Options& options)
      : params(make_params()), optimizer(params, options) {
    for (const int step : {1, 2}) {
      set_grads(params, step);
      optimizer.step();
    }
  }
  std::vector<at::Tensor> params;
  T optimizer;
};
using SteppedSGD = Stepped<to::SGD, to::SGDOptions>;
using SteppedAdam = Stepped<to::Adam, to::AdamOptions>;

to::SGDOptions with_momentum() {
  return to::SGDOptions(0.1).momentum(0.9);
}

/// What loading `state` throws; the optimizer must be unchanged then.
Error refusal_of(to::Optimizer& optimizer, const Value& state) {
  const std::string before = repr(state_dict(optimizer));
  Error error = error_of([&] { load_state_dict(optimizer, state); });
  EXPECT_EQ(repr(state_dict(optimizer)), before) << "changed by an error";
  return error;
}

std::string torch_mismatch_of(to::Optimizer& optimizer, const Value& state) {
  const Error error = refusal_of(optimizer, state);
  EXPECT_EQ(error.code, ErrorCode::kMismatch) << error.message;
  return error.message;
}

/// The optimizer's state with another option in its first group.
Value with_option(
    const to::Optimizer& optimizer,
    std::string_view name,
    const Value& value) {
  Value saved = without(state_dict(optimizer), "");
  group_of(saved, 0).set(name, value);
  return saved;
}

at::Tensor state_tensor(
    const to::Optimizer& optimizer,
    std::int64_t id,
    std::string_view key) {
  const Value saved = state_dict(optimizer);
  return to_tensor(*saved.find("state")->find(id)->find(key)->as_tensor());
}

class OwnOptimizer : public to::Optimizer {
 public:
  explicit OwnOptimizer(const std::vector<at::Tensor>& params)
      : Optimizer(params, std::make_unique<to::SGDOptions>(0.1)) {}
  at::Tensor step(LossClosure /*closure*/) override {
    return {};
  }
};

class DerivedSGD : public to::SGD {
  using SGD::SGD;
};

} // namespace

TEST(TorchOptimState, GroupsAreNumberedThrough) {
  const std::vector<at::Tensor> params = make_params();
  const to::SGD optimizer(
      std::vector<to::OptimizerParamGroup>{
          to::OptimizerParamGroup({params[0], params[1]}),
          to::OptimizerParamGroup(
              {params[2]},
              std::make_unique<to::SGDOptions>(0.5))},
      to::SGDOptions(0.1).weight_decay(0.01));
  EXPECT_EQ(
      repr(state_dict(optimizer)),
      "{'state': {}, 'param_groups': ["
      "{'lr': 0.1, 'momentum': 0.0, 'dampening': 0.0, 'weight_decay': 0.01, "
      "'nesterov': False, 'maximize': False, 'foreach': None, "
      "'differentiable': False, 'fused': None, 'params': [0, 1]}, "
      "{'lr': 0.5, 'momentum': 0.0, 'dampening': 0.0, 'weight_decay': 0.01, "
      "'nesterov': False, 'maximize': False, 'foreach': None, "
      "'differentiable': False, 'fused': None, 'params': [2]}]}");
}

TEST(TorchOptimState, AParameterThatIsTwiceInAGroupHasOneNumber) {
  const std::vector<at::Tensor> params = make_params();
  const to::SGD optimizer(
      {params[0], params[0], params[1]},
      to::SGDOptions(0.1));
  EXPECT_EQ(
      repr(*group_of(state_dict(optimizer), 0).find("params")),
      "[0, 0, 2]");
}

TEST(TorchOptimState, FrozenParametersHaveNoState) {
  std::vector<at::Tensor> params = make_params();
  params[1].requires_grad_(false);
  to::Adam optimizer(params, to::AdamOptions(0.1));
  set_grads(params, 1);
  params[1].mutable_grad() = at::Tensor();
  optimizer.step();
  const Value saved = state_dict(optimizer);
  std::vector<std::int64_t> ids;
  for (const auto& item : saved.find("state")->as_dict()->items) {
    ids.push_back(*item.first.as_int());
  }
  EXPECT_THAT(ids, testing::ElementsAre(0, 2, 3, 4));
  to::Adam other(params, to::AdamOptions(0.2));
  load_state_dict(other, saved);
  EXPECT_EQ(repr(state_dict(other)), repr(saved));
}

TEST(TorchOptimState, AliasesTheLiveState) {
  SteppedSGD sgd(with_momentum());
  const at::Tensor buffer = state_tensor(sgd.optimizer, 0, "momentum_buffer");
  set_grads(sgd.params, 3);
  sgd.optimizer.step();
  EXPECT_TRUE(
      same_bits(buffer, state_tensor(sgd.optimizer, 0, "momentum_buffer")));
}

TEST(TorchOptimState, LoadedStateIsItsOwn) {
  SteppedSGD source(with_momentum());
  SteppedSGD target(to::SGDOptions(0.2).momentum(0.5));
  load_state_dict(target.optimizer, state_dict(source.optimizer));
  const std::string saved = repr(state_dict(source.optimizer));
  EXPECT_EQ(repr(state_dict(target.optimizer)), saved);
  set_grads(target.params, 7);
  target.optimizer.step();
  EXPECT_EQ(repr(state_dict(source.optimizer)), saved);
}

TEST(TorchOptimState, OptionsAreTakenInPlace) {
  SteppedAdam source(to::AdamOptions(0.3).betas({0.5, 0.6}).amsgrad(true));
  to::Adam target(make_params());
  const auto& options =
      static_cast<const to::AdamOptions&>(target.param_groups()[0].options());
  load_state_dict(target, state_dict(source.optimizer));
  EXPECT_EQ(options.lr(), 0.3);
  EXPECT_EQ(options.betas(), std::make_tuple(0.5, 0.6));
  EXPECT_TRUE(options.amsgrad());
}

// The groups are Python's; state of parameters that there are not is dropped.
TEST(TorchOptimState, WhatLibTorchHasNoPlaceForIsKeptBeside) {
  const SteppedSGD sgd(with_momentum());
  Value saved = with_option(sgd.optimizer, "initial_lr", 0.4);
  group_of(saved, 0).set("fused", true);
  group_of(saved, 0).set("param_names", Value::list({"a"}));
  Value state = *saved.find("state");
  state.set(77, Value::dict({{"note", 1}}));
  to::SGD target(make_params(), to::SGDOptions(1.0));
  load_state_dict(target, saved);
  const Value kept = state_dict(target);
  for (const char* key : {"lr", "initial_lr", "fused", "param_names"}) {
    EXPECT_EQ(
        repr(*group_of(kept, 0).find(key)),
        repr(*group_of(saved, 0).find(key)))
        << key;
  }
  const Value before = state_dict(sgd.optimizer);
  EXPECT_EQ(repr(*kept.find("state")), repr(*before.find("state")));
}

TEST(TorchOptimState, LeftoverStateGoesAway) {
  SteppedSGD sgd(with_momentum());
  const to::SGD fresh(make_params(), with_momentum());
  load_state_dict(sgd.optimizer, state_dict(fresh));
  EXPECT_EQ(repr(state_dict(sgd.optimizer)), repr(state_dict(fresh)));
}

// As files of older versions have it; the next step makes it anew.
TEST(TorchOptimState, MomentumBufferMayBeNone) {
  SteppedSGD sgd(with_momentum());
  load_state_dict(
      sgd.optimizer,
      with_state(state_dict(sgd.optimizer), "momentum_buffer", ckpt::None()));
  EXPECT_EQ((*state_dict(sgd.optimizer).find("state")).find(0), nullptr);
  set_grads(sgd.params, 5);
  sgd.optimizer.step();
  EXPECT_TRUE(same_bits(
      state_tensor(sgd.optimizer, 0, "momentum_buffer"),
      sgd.params[0].grad()));
}

TEST(TorchOptimState, FilesOfOlderVersionsLoad) {
  SteppedAdam adam(to::AdamOptions(0.3));
  const Value before = state_dict(adam.optimizer);
  const std::string text = repr(*before.find("state"));
  Value old = without(before, "fused");
  old = without(old, "decoupled_weight_decay");
  load_state_dict(adam.optimizer, with_state(old, "step", 2));
  const Value after = state_dict(adam.optimizer);
  EXPECT_EQ(repr(*after.find("state")), text);
  // What the file lacked comes last, in Python's order.
  const Value first = group_of(before, 0);
  const Value now = group_of(after, 0);
  for (const auto& [key, value] : first.as_dict()->items) {
    EXPECT_EQ(repr(*now.find(*key.as_string())), repr(value)) << repr(key);
  }
  EXPECT_EQ(now.as_dict()->items.size(), first.as_dict()->items.size());
}

TEST(TorchOptimState, FloatStateTakesTheParametersDtype) {
  const SteppedAdam source(to::AdamOptions(0.1));
  std::vector<at::Tensor> params;
  params.reserve(source.params.size());
  for (const at::Tensor& param : source.params) {
    params.push_back(param.detach().to(at::kDouble).requires_grad_());
  }
  to::Adam target(params);
  load_state_dict(target, state_dict(source.optimizer));
  EXPECT_EQ(state_tensor(target, 0, "exp_avg").scalar_type(), at::kDouble);
  EXPECT_EQ(state_tensor(target, 0, "step").scalar_type(), at::kFloat);
}

TEST(TorchOptimState, AdagradStartsWhereTheFileHasNothing) {
  std::vector<at::Tensor> params = make_params();
  const auto options = to::AdagradOptions(0.1).initial_accumulator_value(0.5);
  to::Adagrad optimizer(params, options);
  set_grads(params, 1);
  optimizer.step();
  const to::Adagrad fresh(make_params(), options);
  Value saved = without(state_dict(optimizer), "");
  saved.set("state", Value::dict({}));
  load_state_dict(optimizer, saved);
  EXPECT_EQ(repr(state_dict(optimizer)), repr(state_dict(fresh)));
  optimizer.step();
}

TEST(TorchOptimState, GroupsMustAgree) {
  SteppedSGD one(with_momentum());
  const std::vector<at::Tensor> params = make_params();
  const to::SGD two(
      std::vector<to::OptimizerParamGroup>{
          to::OptimizerParamGroup({params[0]}),
          to::OptimizerParamGroup({params[1]})},
      to::SGDOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(one.optimizer, state_dict(two)),
      "loaded state dict has a different number of parameter groups");
  const to::SGD smaller({params[0]}, to::SGDOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(one.optimizer, state_dict(smaller)),
      "loaded state dict contains a parameter group that doesn't match the "
      "size of optimizer's group");
}

TEST(TorchOptimState, ShapesMustAgree) {
  const SteppedSGD source(with_momentum());
  std::vector<at::Tensor> params = make_params();
  std::swap(params[0], params[1]);
  to::SGD target(params, to::SGDOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(target, state_dict(source.optimizer)),
      "'momentum_buffer' of parameter 0: expected shape [16, 8, 3, 3], got "
      "[8, 3, 3, 3]");
}

TEST(TorchOptimState, ForeignTreesAreRefused) {
  SteppedSGD sgd(with_momentum());
  SteppedAdam adam(to::AdamOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(adam.optimizer, 3),
      "optimizer state: expected a dict, got 'int'");
  EXPECT_EQ(
      torch_mismatch_of(sgd.optimizer, state_dict(adam.optimizer)),
      "a loaded parameter group has no 'momentum'");
  const Value saved = state_dict(adam.optimizer);
  EXPECT_EQ(
      torch_mismatch_of(adam.optimizer, without(saved, "exp_avg_sq")),
      "state of parameter 0 has no 'exp_avg_sq'");
  EXPECT_EQ(
      torch_mismatch_of(adam.optimizer, with_state(saved, "sum", 1)),
      "state of parameter 0 has 'sum', which Adam does not keep");
}

TEST(TorchOptimState, StepsAreCounts) {
  SteppedAdam adam(to::AdamOptions(0.1));
  const Value saved = state_dict(adam.optimizer);
  const at::Tensor complex = torch::ones({}, at::kComplexFloat);
  for (const Value& step :
       {Value(-1), Value(0.5), Value(1e300), to_value(complex)}) {
    EXPECT_THAT(
        torch_mismatch_of(adam.optimizer, with_state(saved, "step", step)),
        HasSubstr("'step' of the loaded state: expected a "));
  }
}

// LibTorch would read a tensor that is not there.
TEST(TorchOptimState, OptionsNeedTheirState) {
  SteppedAdam adam(to::AdamOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(
          adam.optimizer,
          with_option(adam.optimizer, "amsgrad", true)),
      "state of parameter 0 has no 'max_exp_avg_sq'");
  Stepped<to::RMSprop, to::RMSpropOptions> rmsprop(to::RMSpropOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(
          rmsprop.optimizer,
          with_option(rmsprop.optimizer, "momentum", 0.9)),
      "state of parameter 0 has no 'momentum_buffer'");
  EXPECT_EQ(
      torch_mismatch_of(
          rmsprop.optimizer,
          with_option(rmsprop.optimizer, "centered", true)),
      "state of parameter 0 has no 'grad_avg'");
}

TEST(TorchOptimState, BadOptionsAreRefused) {
  Stepped<to::Adagrad, to::AdagradOptions> adagrad(to::AdagradOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(
          adagrad.optimizer,
          with_option(adagrad.optimizer, "lr_decay", -1)),
      "Invalid lr_decay value: -1.0");
  Stepped<to::RMSprop, to::RMSpropOptions> rmsprop(to::RMSpropOptions(0.1));
  EXPECT_EQ(
      torch_mismatch_of(
          rmsprop.optimizer,
          with_option(rmsprop.optimizer, "alpha", -1)),
      "Invalid alpha value: -1.0");
}

TEST(TorchOptimState, OptionsThatLibTorchWouldNotFollowAreUnsupported) {
  SteppedAdam adam(to::AdamOptions(0.1));
  for (const char* name :
       {"maximize", "capturable", "differentiable", "decoupled_weight_decay"}) {
    const Error error =
        refusal_of(adam.optimizer, with_option(adam.optimizer, name, true));
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_EQ(
        error.message,
        std::string("option '") + name +
            "' of a loaded parameter group: torch::optim::Adam cannot follow "
            "it; expected False, got True");
  }
}

// As in Python: whatever the file says, AdamW decays apart from the gradient.
TEST(TorchOptimState, AdamWTakesAdamsState) {
  const SteppedAdam adam(to::AdamOptions(0.1));
  to::AdamW target(make_params());
  load_state_dict(target, state_dict(adam.optimizer));
  const Value saved = state_dict(target);
  EXPECT_TRUE(*(*group_of(saved, 0).find("decoupled_weight_decay")).as_bool());
  EXPECT_EQ(
      repr(*saved.find("state")),
      repr(*state_dict(adam.optimizer).find("state")));
}

TEST(TorchOptimState, DerivedClassesAreWhatTheyDeriveFrom) {
  const SteppedSGD source(with_momentum());
  DerivedSGD target(make_params(), to::SGDOptions(0.2));
  load_state_dict(target, state_dict(source.optimizer));
  EXPECT_EQ(repr(state_dict(target)), repr(state_dict(source.optimizer)));
}

TEST(TorchOptimState, OtherOptimizersAreUnsupported) {
  to::LBFGS lbfgs(make_params());
  const Error error = error_of([&] { load_state_dict(lbfgs, Value()); });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(
      error.message,
      "state of torch::optim::LBFGS is not supported; expected one of "
      "torch::optim::SGD, Adam, AdamW, RMSprop, Adagrad");
  const OwnOptimizer own(make_params());
  const Error other = error_of([&] { state_dict(own); });
  EXPECT_EQ(other.code, ErrorCode::kUnsupported);
  EXPECT_THAT(other.message, HasSubstr("OwnOptimizer"));
}

} // namespace lockstep::test
