// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/optim/support.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using testing::HasSubstr;

std::string mismatch_of(Optimizer& optimizer, const Value& state) {
  const std::string before = repr(optimizer.state_dict());
  const Error error = error_of([&] { optimizer.load_state_dict(state); });
  EXPECT_EQ(error.code, ErrorCode::kMismatch) << error.message;
  EXPECT_EQ(repr(optimizer.state_dict()), before) << "changed by an error";
  return error.message;
}

/// An optimizer after two steps.
template <class T, class Options>
struct Trained {
  explicit Trained(const Options& options)
      : params(make_params()), optimizer(params, options) {
    for (const int step : {1, 2}) {
      set_grads(params, step);
      optimizer.step();
    }
  }
  std::vector<at::Tensor> params;
  T optimizer;
};
using TrainedSGD = Trained<SGD, SGDOptions>;
using TrainedAdam = Trained<Adam, AdamOptions>;

} // namespace

TEST(OptimizerState, HasNoStateBeforeTheFirstStep) {
  const SGD optimizer(make_params(), {.lr = 0.1, .momentum = 0.9});
  EXPECT_EQ(
      repr(optimizer.state_dict()),
      "{'state': {}, 'param_groups': [{'lr': 0.1, 'momentum': 0.9, "
      "'dampening': 0.0, 'weight_decay': 0.0, 'nesterov': False, 'maximize': "
      "False, 'foreach': None, 'differentiable': False, 'fused': None, "
      "'params': [0, 1, 2, 3, 4, 5]}]}");
}

TEST(OptimizerState, AdamKeepsStepAsFloatTensor) {
  const TrainedAdam adam({.lr = 0.1});
  const Value state = *(*adam.optimizer.state_dict().find("state")).find(0);
  const at::Tensor step = to_tensor(*state.find("step")->as_tensor());
  EXPECT_EQ(step.scalar_type(), at::kFloat);
  EXPECT_EQ(step.dim(), 0);
  EXPECT_EQ(step.item<float>(), 2);
}

TEST(OptimizerState, LoadedStateIsItsOwn) {
  TrainedSGD source({.lr = 0.1, .momentum = 0.9});
  TrainedSGD target({.lr = 0.2, .momentum = 0.5});
  target.optimizer.load_state_dict(source.optimizer.state_dict());
  const std::string saved = repr(source.optimizer.state_dict());
  EXPECT_EQ(repr(target.optimizer.state_dict()), saved);
  set_grads(target.params, 7);
  target.optimizer.step();
  EXPECT_EQ(repr(source.optimizer.state_dict()), saved);
}

TEST(OptimizerState, GroupCountsMustAgree) {
  TrainedSGD one({.momentum = 0.9});
  const std::vector<at::Tensor> params = make_params();
  SGD two({{.params = {params[0]}}, {.params = {params[1]}}});
  EXPECT_EQ(
      mismatch_of(one.optimizer, two.state_dict()),
      "loaded state dict has a different number of parameter groups");
  SGD smaller({params[0]});
  EXPECT_EQ(
      mismatch_of(one.optimizer, smaller.state_dict()),
      "loaded state dict contains a parameter group that doesn't match the "
      "size of optimizer's group");
}

TEST(OptimizerState, ShapesMustAgree) {
  TrainedSGD source({.momentum = 0.9});
  std::vector<at::Tensor> params = make_params();
  std::swap(params[0], params[1]);
  SGD target(params);
  EXPECT_EQ(
      mismatch_of(target, source.optimizer.state_dict()),
      "'momentum_buffer' of parameter 0: expected shape [16, 8, 3, 3], got "
      "[8, 3, 3, 3]");
}

TEST(OptimizerState, StateOfAnotherOptimizerIsRefused) {
  TrainedSGD sgd({.momentum = 0.9});
  TrainedAdam adam({});
  EXPECT_THAT(
      mismatch_of(
          sgd.optimizer,
          Value::dict(
              {{"state", *adam.optimizer.state_dict().find("state")},
               {"param_groups",
                *sgd.optimizer.state_dict().find("param_groups")}})),
      HasSubstr("state of parameter 0 has 'step', which SGD does not keep"));
}

TEST(OptimizerState, ForeignTreesAreRefused) {
  TrainedAdam adam({});
  EXPECT_EQ(
      mismatch_of(adam.optimizer, 3),
      "optimizer state: expected a dict, got 'int'");
  EXPECT_EQ(
      mismatch_of(adam.optimizer, Value::dict({{"epoch", 1}})),
      "optimizer state has no 'param_groups'");
  const Value saved = adam.optimizer.state_dict();
  EXPECT_EQ(
      mismatch_of(adam.optimizer, without(saved, "exp_avg_sq")),
      "state of parameter 0 has no 'exp_avg_sq'");
  EXPECT_THAT(
      mismatch_of(adam.optimizer, with_state(saved, "exp_avg", 1)),
      HasSubstr("expected a Tensor, got 'int'"));
  EXPECT_EQ(
      mismatch_of(adam.optimizer, without(saved, "eps")),
      "a loaded parameter group has no 'eps'");
}

TEST(OptimizerState, AmsgradOfTheFileNeedsItsMaximum) {
  TrainedAdam adam({.amsgrad = true});
  EXPECT_EQ(
      mismatch_of(
          adam.optimizer,
          without(adam.optimizer.state_dict(), "max_exp_avg_sq")),
      "state of parameter 0 has no 'max_exp_avg_sq'");
}

TEST(OptimizerState, OptionsOfTheFileWinAndUnknownOnesAreKept) {
  TrainedSGD sgd({.lr = 0.1});
  Value saved = without(sgd.optimizer.state_dict(), "");
  group_of(saved, 0).set("lr", 0.7);
  group_of(saved, 0).set("comment", "mine");
  sgd.optimizer.load_state_dict(saved);
  EXPECT_EQ(sgd.optimizer.param_groups()[0].lr(), 0.7);
  EXPECT_EQ(
      repr(*group_of(sgd.optimizer.state_dict(), 0).find("comment")),
      "'mine'");
}

TEST(OptimizerState, FilesOfOlderVersionsLoad) {
  TrainedAdam adam({.lr = 0.3});
  Value old = without(adam.optimizer.state_dict(), "fused");
  old = without(old, "decoupled_weight_decay");
  old = with_state(old, "step", 2);
  AdamW target(make_params());
  target.load_state_dict(old);
  const ParamGroup& group = target.param_groups()[0];
  EXPECT_TRUE(group.flag("decoupled_weight_decay"));
  EXPECT_TRUE(group.find("fused")->is_none());
  const Value state = *(*target.state_dict().find("state")).find(0);
  EXPECT_EQ(to_tensor(*state.find("step")->as_tensor()).item<float>(), 2);

  TrainedSGD sgd({.momentum = 0.9});
  sgd.optimizer.load_state_dict(without(sgd.optimizer.state_dict(), "fused"));
  EXPECT_FALSE(sgd.optimizer.param_groups()[0].flag("fused"));
}

TEST(OptimizerState, MomentumBufferMayBeNone) {
  for (const bool fused : {false, true}) {
    TrainedSGD sgd({.lr = 0.1, .momentum = 0.9, .fused = fused});
    const Value saved =
        with_state(sgd.optimizer.state_dict(), "momentum_buffer", ckpt::None());
    sgd.optimizer.load_state_dict(saved);
    EXPECT_EQ(repr(sgd.optimizer.state_dict()), repr(saved));
    set_grads(sgd.params, 5);
    sgd.optimizer.step();
    const Value state = *(*sgd.optimizer.state_dict().find("state")).find(0);
    EXPECT_TRUE(same_bits(
        to_tensor(*state.find("momentum_buffer")->as_tensor()),
        sgd.params[0].grad()));
  }
}

TEST(OptimizerState, FloatStateTakesTheParametersDtype) {
  TrainedSGD source({.momentum = 0.9});
  std::vector<at::Tensor> params;
  params.reserve(source.params.size());
  for (const at::Tensor& param : source.params) {
    params.push_back(param.detach().to(at::kDouble).requires_grad_());
  }
  SGD target(params);
  target.load_state_dict(source.optimizer.state_dict());
  const Value state = *(*target.state_dict().find("state")).find(0);
  EXPECT_EQ(
      to_tensor(*state.find("momentum_buffer")->as_tensor()).scalar_type(),
      at::kDouble);
}

TEST(OptimizerState, NamesStayWhenTheFileHasNone) {
  torch::nn::Linear layer(2, 1);
  SGD named(named_parameters(*layer), {.lr = 0.1});
  SGD plain(layer->parameters(), {.lr = 0.2});
  named.load_state_dict(plain.state_dict());
  EXPECT_EQ(
      repr(*named.param_groups()[0].find("param_names")),
      "['weight', 'bias']");
}

/// Groups of named parameters: {{"b", "a"}}.
std::vector<ParamGroup> named_groups(
    const std::vector<std::vector<std::string>>& groups) {
  std::vector<ParamGroup> made;
  for (const std::vector<std::string>& names : groups) {
    ParamGroup& group = made.emplace_back();
    ckpt::List list;
    for (const std::string& name : names) {
      group.params.push_back(torch::ones({2}).requires_grad_());
      group.params.back().mutable_grad() =
          torch::full({2}, name == "a" ? 1 : 2);
      list.items.emplace_back(name);
    }
    group.set("param_names", std::move(list));
  }
  return made;
}

TEST(OptimizerState, NamesDecideWhereBothHaveThem) {
  SGD saved(named_groups({{"b", "a"}}), {.lr = 0.1, .momentum = 0.9});
  saved.step();
  SGD loaded(named_groups({{"a", "b"}}), {.lr = 0.1, .momentum = 0.9});
  loaded.load_state_dict(saved.state_dict());
  EXPECT_EQ(repr(*loaded.param_groups()[0].find("param_names")), "['a', 'b']");
  const Value state = *loaded.state_dict().find("state");
  for (const std::int64_t i : {0, 1}) {
    const ckpt::Value& entry = *state.find(i);
    EXPECT_EQ(
        to_tensor(*entry.find("momentum_buffer")->as_tensor())[0].item<float>(),
        i + 1);
  }
}

TEST(OptimizerState, NamesInOtherGroupsAreRefused) {
  SGD saved(named_groups({{"a"}, {"b"}}), {.lr = 0.1, .momentum = 0.9});
  SGD loaded(named_groups({{"b"}, {"a"}}), {.lr = 0.1, .momentum = 0.9});
  EXPECT_EQ(
      error_of([&] { loaded.load_state_dict(saved.state_dict()); }).message,
      "'a' is in group 0 of the file, in group 1 of the optimizer");
}

TEST(OptimizerState, StateWithoutAParameterIsSavedAgain) {
  TrainedSGD sgd({.momentum = 0.9});
  Value saved = without(sgd.optimizer.state_dict(), "");
  Value state = *saved.find("state");
  state.set(77, Value::dict({{"note", 1}}));
  sgd.optimizer.load_state_dict(saved);
  EXPECT_EQ(repr(sgd.optimizer.state_dict()), repr(saved));
}

} // namespace lockstep::test
