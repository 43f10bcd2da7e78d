// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/optimizer.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/optim/support.h"

namespace lockstep::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

at::Tensor leaf(std::initializer_list<float> values) {
  return torch::tensor(at::ArrayRef<float>(values)).requires_grad_();
}

std::string text_of(const auto& action) {
  const Error error = error_of(action);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << error.message;
  return error.message;
}

std::vector<std::string> option_names(const ParamGroup& group) {
  std::vector<std::string> names;
  for (const NamedOption& option : group.options) {
    names.push_back(option.first);
  }
  return names;
}

struct TwoLayers : torch::nn::Module {
  TwoLayers() {
    first = register_module("first", torch::nn::Linear(3, 2));
    second = register_module("second", torch::nn::Linear(2, 1));
    register_module("again", first);
  }
  torch::nn::Linear first = nullptr;
  torch::nn::Linear second = nullptr;
};

} // namespace

TEST(Optimizer, OptionsKeepPythonsOrder) {
  const std::vector<at::Tensor> params = make_params();
  EXPECT_THAT(
      option_names(SGD(params).param_groups()[0]),
      ElementsAre(
          "lr",
          "momentum",
          "dampening",
          "weight_decay",
          "nesterov",
          "maximize",
          "foreach",
          "differentiable",
          "fused"));
  EXPECT_THAT(
      option_names(Adam(params).param_groups()[0]),
      ElementsAre(
          "lr",
          "betas",
          "eps",
          "weight_decay",
          "amsgrad",
          "maximize",
          "foreach",
          "capturable",
          "differentiable",
          "fused",
          "decoupled_weight_decay"));
}

TEST(Optimizer, GroupsReplaceOptionsByName) {
  const at::Tensor a = leaf({1});
  const at::Tensor b = leaf({2});
  const SGD optimizer(
      {{.params = {a}, .options = {{"lr", 0.5}}}, {.params = {b}}},
      {.lr = 0.1, .momentum = 0.9});
  EXPECT_EQ(optimizer.param_groups()[0].lr(), 0.5);
  EXPECT_EQ(optimizer.param_groups()[1].lr(), 0.1);
  EXPECT_EQ(optimizer.param_groups()[0].number("momentum"), 0.9);
}

TEST(Optimizer, ModuleParametersCountOnceAndCanBeNamed) {
  const TwoLayers net;
  EXPECT_EQ(SGD(net).param_groups()[0].params.size(), 4);
  const SGD named(named_parameters(net), {.lr = 0.1});
  EXPECT_EQ(named.param_groups()[0].options[0].first, "param_names");
  EXPECT_EQ(
      repr(*named.param_groups()[0].find("param_names")),
      "['first.weight', 'first.bias', 'second.weight', 'second.bias']");
}

// A group as scripts filter it: only what requires gradients.
TEST(Optimizer, FilteredGroupLeavesFrozenParametersAlone) {
  TwoLayers net;
  net.first->weight.requires_grad_(false);
  const ParamGroup group = {.params = trainable_parameters(net)};
  SGD optimizer(group, {.lr = 0.01, .momentum = 0.9, .weight_decay = 0.0005});
  EXPECT_EQ(optimizer.param_groups()[0].params.size(), 3);
  const at::Tensor frozen = net.first->weight.clone();
  const at::Tensor trained = net.second->weight.clone();
  net.second->forward(net.first->forward(torch::ones({1, 3}))).sum().backward();
  optimizer.step();
  EXPECT_TRUE(same_bits(net.first->weight, frozen));
  EXPECT_FALSE(same_bits(net.second->weight, trained));
}

TEST(Optimizer, LearningRateOfEachGroupCanBeHalved) {
  const at::Tensor a = leaf({1});
  SGD optimizer({a}, {.lr = 0.5});
  for (ParamGroup& group : optimizer.param_groups()) {
    group.set_lr(group.lr() / 2);
  }
  a.mutable_grad() = torch::ones({1});
  optimizer.step();
  EXPECT_EQ(a.item<float>(), 0.75F);
}

TEST(Optimizer, StepSkipsParametersWithoutGradient) {
  const at::Tensor a = leaf({1});
  const at::Tensor b = leaf({2});
  Adam optimizer({a, b}, {.lr = 0.5});
  b.mutable_grad() = torch::ones({1});
  optimizer.step();
  EXPECT_EQ(a.item<float>(), 1);
  EXPECT_NE(b.item<float>(), 2);
  const ckpt::Value state = optimizer.state_dict();
  EXPECT_EQ(state.find("state")->find(0), nullptr);
  EXPECT_NE(state.find("state")->find(1), nullptr);
}

TEST(Optimizer, ZeroGradDropsOrClears) {
  const at::Tensor a = leaf({1});
  SGD optimizer({a});
  a.mutable_grad() = torch::ones({1});
  optimizer.zero_grad(false);
  EXPECT_EQ(a.grad().item<float>(), 0);
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(Optimizer, BadOptionsGivePyTorchsTexts) {
  const std::vector<at::Tensor> p = {leaf({1})};
  EXPECT_EQ(
      text_of([&] { SGD(p, {.lr = -1}); }),
      "Invalid learning rate: -1.0");
  EXPECT_EQ(
      text_of([&] { SGD(p, {.momentum = -0.5}); }),
      "Invalid momentum value: -0.5");
  EXPECT_EQ(
      text_of([&] { SGD(p, {.weight_decay = -2}); }),
      "Invalid weight_decay value: -2.0");
  EXPECT_EQ(
      text_of([&] { SGD(p, {.nesterov = true}); }),
      "Nesterov momentum requires a momentum and zero dampening");
  EXPECT_EQ(
      text_of([&] { Adam(p, {.eps = -1e-8}); }),
      "Invalid epsilon value: -1e-08");
  EXPECT_EQ(
      text_of([&] {
        AdamW(p, {.betas = {1.0, 0.9}});
      }),
      "Invalid beta parameter at index 0: 1.0");
  EXPECT_EQ(
      text_of([&] {
        AdamW(p, {.betas = {0.9, -0.1}});
      }),
      "Invalid beta parameter at index 1: -0.1");
  EXPECT_EQ(
      text_of([&] {
        SGD({{.params = p, .options = {{"lr", -3.0}}}}, {.lr = 0.1});
      }),
      "Invalid learning rate: -3.0");
}

TEST(Optimizer, UnknownGroupOptionSuggestsTheNearest) {
  const ParamGroup group = {
      .params = {leaf({1})},
      .options = {{"wieght_decay", 0.1}}};
  const Error error = error_of([&] { SGD optimizer(group); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "unknown option 'wieght_decay'");
  EXPECT_EQ(error.hint, "did you mean 'weight_decay'?");
}

TEST(Optimizer, WrongTypeOfOptionNamesIt) {
  const ParamGroup group = {.params = {leaf({1})}, .options = {{"lr", "fast"}}};
  EXPECT_THAT(text_of([&] { SGD optimizer(group); }), HasSubstr("'lr'"));
}

TEST(Optimizer, BadParametersGivePyTorchsTexts) {
  const at::Tensor a = leaf({1});
  const at::Tensor b = leaf({2});
  EXPECT_EQ(
      text_of([&] { SGD(std::vector<at::Tensor>{}); }),
      "optimizer got an empty parameter list");
  EXPECT_EQ(text_of([&] { SGD({a * 2}); }), "can't optimize a non-leaf Tensor");
  EXPECT_THAT(text_of([&] { SGD({a, a}); }), HasSubstr("duplicate parameters"));
  EXPECT_EQ(
      text_of([&] {
        SGD({{.params = {a}}, {.params = {b, a}}});
      }),
      "some parameters appear in more than one parameter group");
  EXPECT_EQ(
      text_of([&] {
        SGD(
            {{.params = {a}},
             {.params = {b},
              .options = {{"param_names", ckpt::Value::list({"b"})}}}});
      }),
      "all optimizer param groups should be with/without names. cannot add "
      "param group with names to the optimizer");
}

TEST(Optimizer, AddedGroupIsTrainedAndABadOneIsNotAdded) {
  const at::Tensor a = leaf({1});
  const at::Tensor b = leaf({2});
  SGD optimizer({a}, {.lr = 1});
  EXPECT_EQ(
      error_of([&] { optimizer.add_param_group({.params = {a}}); }).code,
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(optimizer.param_groups().size(), 1);
  optimizer.add_param_group({.params = {b}, .options = {{"lr", 0.5}}});
  b.mutable_grad() = torch::ones({1});
  optimizer.step();
  EXPECT_EQ(b.item<float>(), 1.5F);
}

TEST(Optimizer, SparseGradientIsRefused) {
  const at::Tensor a = leaf({1, 2});
  a.mutable_grad() = torch::ones({2}).to_sparse();
  SGD sgd({a});
  Adam adam({a});
  for (Optimizer* optimizer :
       {static_cast<Optimizer*>(&sgd), static_cast<Optimizer*>(&adam)}) {
    const Error error = error_of([&] { optimizer->step(); });
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.message, HasSubstr("does not support sparse gradients"));
  }
}

// A strided view is not dense: the scratch memory cannot take its layout.
TEST(Optimizer, GradientsOfAnyLayoutGiveTheSameStep) {
  const at::Tensor wide = torch::arange(12, torch::kFloat).reshape({3, 4});
  for (const double momentum : {0.0, 0.9}) {
    const at::Tensor a = torch::ones({3, 2}).requires_grad_();
    const at::Tensor b = torch::ones({3, 2}).requires_grad_();
    SGD first({a}, {.momentum = momentum, .weight_decay = 0.1});
    SGD second({b}, {.momentum = momentum, .weight_decay = 0.1});
    a.mutable_grad() = wide.slice(1, 0, 4, 2);
    b.mutable_grad() = wide.slice(1, 0, 4, 2).contiguous();
    first.step();
    second.step();
    EXPECT_TRUE(same_bits(a, b));
  }
}

// A buffer without content would go into the next steps and into files.
TEST(Optimizer, AStepThatThrewKeepsNoMomentum) {
  for (const bool fused : {false, true}) {
    const at::Tensor good = leaf({1, 2});
    const at::Tensor bad =
        fused ? at::zeros({1}, at::kComplexFloat).requires_grad_() : leaf({3});
    SGD optimizer(
        {good, bad},
        {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1, .fused = fused});
    bad.mutable_grad() = fused ? at::ones_like(bad) : at::ones({2});
    good.mutable_grad() = fused ? at::ones({2}) : at::Tensor();
    EXPECT_ANY_THROW(optimizer.step());
    const ckpt::Value saved = optimizer.state_dict();
    for (const auto& [id, state] : saved.find("state")->as_dict()->items) {
      EXPECT_THAT(state.as_dict()->items, testing::IsEmpty()) << fused;
    }
    bad.mutable_grad() = at::Tensor();
    good.mutable_grad() = at::full({2}, 0.25);
    const at::Tensor other = good.detach().clone().requires_grad_();
    other.mutable_grad() = good.grad().clone();
    SGD first(
        {other},
        {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1, .fused = fused});
    first.step();
    optimizer.step();
    EXPECT_TRUE(same_bits(good, other))
        << "a first step, as if none was before";
  }
}

TEST(Optimizer, AParameterThatLeftItsGroupIsNamed) {
  const at::Tensor a = leaf({1});
  const at::Tensor b = leaf({2});
  SGD optimizer({a, b}, {.lr = 1, .momentum = 0.9});
  b.mutable_grad() = torch::ones({1});
  optimizer.step();
  optimizer.param_groups()[0].params.pop_back();
  EXPECT_THAT(
      text_of([&] { (void)optimizer.state_dict(); }),
      HasSubstr("state of a parameter that is in none of its groups"));
}

// Python's schedulers fill it, so that a program that holds it sees the rate.
TEST(Optimizer, ATensorStaysTheRate) {
  const at::Tensor a = leaf({1});
  const at::Tensor rate = torch::tensor(0.5, at::kDouble);
  SGD optimizer(
      ParamGroup{.params = {a}, .options = {{"lr", to_value(rate)}}},
      {.momentum = 0.9});
  StepLR scheduler(optimizer, {.step_size = 1, .gamma = 0.5});
  a.mutable_grad() = torch::ones({1});
  optimizer.step();
  scheduler.step();
  EXPECT_EQ(rate.item<double>(), 0.25);
  rate.fill_(0.125);
  EXPECT_EQ(optimizer.param_groups()[0].lr(), 0.125);
  EXPECT_EQ(optimizer.param_groups()[0].number("initial_lr"), 0.5)
      << "a copy, as Python's";
  scheduler.step();
  EXPECT_EQ(rate.item<double>(), 0.0625);
}

TEST(Optimizer, GradientsStayAsTheyAre) {
  std::vector<at::Tensor> params = make_params();
  AdamW optimizer(params, {.weight_decay = 0.1, .maximize = true});
  set_grads(params, 3);
  const at::Tensor before = params[3].grad().clone();
  optimizer.step();
  EXPECT_TRUE(same_bits(params[3].grad(), before));
}

} // namespace lockstep::test
