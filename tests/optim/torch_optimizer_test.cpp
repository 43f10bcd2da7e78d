// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/torch_optimizer.h"

#include <functional>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/optim/schedules.h"
#include "tests/distributed/three_layers.h"

namespace lockstep {
namespace {

using test::backward;
using test::three_layers;
using testing::HasSubstr;

class WarningCount : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {
    ++count;
  }
  int count = 0;
};

TEST(FromTorch, RefusesOptionsOfAnotherClass) {
  torch::optim::Adam optimizer(three_layers()->parameters());
  optimizer.param_groups()[0].set_options(
      std::make_unique<torch::optim::AdamWOptions>(0.1));
  try {
    (void)state_dict(optimizer);
    ADD_FAILURE() << "options of AdamW were taken for Adam's";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(
        e.error().message,
        HasSubstr("expected torch::optim::AdamOptions, got "
                  "torch::optim::AdamWOptions"));
  }
}

// What schedulers keep in the groups, and what only Python knows.
TEST(FromTorch, KeepsAllKeysOfTheGroups) {
  torch::nn::Sequential net = three_layers();
  SGD python(net->parameters(), {.lr = 0.4, .momentum = 0.9, .fused = true});
  const OneCycleLR cycle(python, {.max_lr = {0.4}, .total_steps = 9});
  python.param_groups()[0].set("comment", "mine");
  const auto optimizer =
      from_torch(std::make_unique<torch::optim::SGD>(net->parameters(), 0.1));
  optimizer->load_state_dict(python.state_dict());
  const auto text = [](const Optimizer& one) {
    return ckpt::to_text(*one.state_dict().find("param_groups"));
  };
  EXPECT_EQ(text(*optimizer), text(python));
  for (const char* key :
       {"initial_lr", "max_lr", "min_lr", "max_momentum", "comment"}) {
    EXPECT_NE(optimizer->param_groups()[0].find(key), nullptr) << key;
  }
}

// LibTorch would never step it.
TEST(FromTorch, RefusesAGroupThatLibTorchHasNot) {
  const at::Tensor weight = torch::ones({1}).requires_grad_();
  const at::Tensor thawed = torch::ones({1}).requires_grad_();
  const auto optimizer =
      from_torch(std::make_unique<torch::optim::SGD>(std::vector{weight}, 0.1));
  optimizer->param_groups().push_back({.params = {thawed}});
  try {
    optimizer->step();
    ADD_FAILURE();
  } catch (const Exception& error) {
    EXPECT_THAT(
        error.error().message,
        HasSubstr("has 2 parameter groups, expected 1"));
  }
}

// A one-cycle schedule moves the momentum, too.
TEST(FromTorch, StepsWithTheOptionsOfItsGroups) {
  torch::nn::Sequential net = three_layers();
  torch::nn::Sequential other = three_layers();
  const auto torch_sgd = from_torch(std::make_unique<torch::optim::SGD>(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9)));
  SGD own(other->parameters(), {.lr = 0.1, .momentum = 0.9});
  OneCycleLR first(*torch_sgd, {.max_lr = {0.4}, .total_steps = 9});
  OneCycleLR second(own, {.max_lr = {0.4}, .total_steps = 9});
  for (int step = 0; step < 5; ++step) {
    torch_sgd->zero_grad();
    own.zero_grad();
    backward(net, step);
    backward(other, step);
    torch_sgd->step();
    own.step();
    first.step();
    second.step();
  }
  for (std::size_t i = 0; i < net->parameters().size(); ++i) {
    EXPECT_TRUE(
        torch::allclose(net->parameters()[i], other->parameters()[i], 0, 1e-6));
  }
}

TEST(FromTorch, AScheduleThatStepsFirstWarns) {
  WarningCount warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  torch::nn::Sequential net = three_layers();
  const auto optimizer =
      from_torch(std::make_unique<torch::optim::SGD>(net->parameters(), 0.1));
  StepLR early(*optimizer, {.step_size = 2});
  early.step();
  early.step();
  EXPECT_EQ(warnings.count, 1);
  StepLR right(*optimizer, {.step_size = 2});
  optimizer->step();
  right.step();
  EXPECT_EQ(warnings.count, 1);
}

TEST(FromTorch, RefusesNull) {
  try {
    from_torch(std::shared_ptr<torch::optim::SGD>());
    ADD_FAILURE();
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
  }
}

struct Moved {
  std::string name = {};
  std::function<void(torch::optim::Adam&, const at::Tensor& fresh)> change = {};
  /// Parameters of the groups, then.
  std::vector<std::size_t> sizes = {};
};

// Whoever changes LibTorch's groups while a wrapper, or a schedule, is there.
TEST(FromTorch, FollowsTheParametersOfLibTorchsGroups) {
  using torch::optim::OptimizerParamGroup;
  const std::vector<Moved> all = {
      {"one more",
       [](auto& adam, const at::Tensor& fresh) {
         adam.param_groups()[0].params().push_back(fresh);
       },
       {3, 1}},
      {"add_parameters",
       [](auto& adam, const at::Tensor& fresh) {
         adam.add_parameters({fresh});
       },
       {3, 1}},
      {"others",
       [](auto& adam, const at::Tensor& fresh) {
         adam.param_groups()[0].params() = {fresh};
       },
       {1, 1}},
      {"fewer",
       [](auto& adam, const at::Tensor&) {
         adam.param_groups()[0].params().pop_back();
       },
       {1, 1}},
      {"without the last group",
       [](auto& adam, const at::Tensor&) { adam.param_groups().pop_back(); },
       {2}},
      {"without the first group",
       [](auto& adam, const at::Tensor&) {
         adam.param_groups().erase(adam.param_groups().begin());
       },
       {1}},
      {"another group",
       [](auto& adam, const at::Tensor& fresh) {
         adam.add_param_group(OptimizerParamGroup({fresh}));
       },
       {2, 1, 1}},
      {"another group for the first",
       [](auto& adam, const at::Tensor& fresh) {
         adam.param_groups().erase(adam.param_groups().begin());
         adam.add_param_group(OptimizerParamGroup({fresh}));
       },
       {1, 1}}};
  for (const Moved& moved : all) {
    SCOPED_TRACE(moved.name);
    const auto weight = [] { return torch::ones({2}).requires_grad_(); };
    const at::Tensor fresh = weight();
    torch::optim::Adam adam(
        {OptimizerParamGroup({weight(), weight()}),
         OptimizerParamGroup(
             {weight()},
             std::make_unique<torch::optim::AdamOptions>(0.5))},
        torch::optim::AdamOptions(0.1));
    const auto wrapper = from_torch(adam);
    const StepLR schedule(*wrapper, {.step_size = 3});
    const auto step = [&] {
      for (const auto& group : adam.param_groups()) {
        for (const at::Tensor& param : group.params()) {
          param.mutable_grad() = torch::ones({2});
        }
      }
      wrapper->step();
    };
    step();
    moved.change(adam, fresh);
    const auto version = fresh._version();
    step();
    EXPECT_EQ(fresh._version() > version, fresh.grad().defined())
        << "who holds copies is told of the write";
    const ckpt::Value saved = wrapper->state_dict();
    EXPECT_EQ(ckpt::to_text(saved), ckpt::to_text(state_dict(adam)));
    std::vector<std::size_t> sizes;
    std::size_t count = 0;
    for (const ParamGroup& group : wrapper->param_groups()) {
      sizes.push_back(group.params.size());
      count += group.params.size();
    }
    EXPECT_EQ(sizes, moved.sizes);
    EXPECT_EQ(saved.find("state")->as_dict()->items.size(), count);
    const ParamGroup& last = wrapper->param_groups()[sizes.size() - 1];
    const ParamGroup& first = wrapper->param_groups()[0];
    EXPECT_EQ(first.number("initial_lr"), first.lr());
    if (last.find("initial_lr") != nullptr) {
      EXPECT_EQ(last.number("initial_lr"), last.lr());
    }
    torch::optim::Adam next(
        adam.param_groups(),
        torch::optim::AdamOptions(0.1));
    load_state(next, saved);
  }
}

// LibTorch would never step it, or go on stepping it.
TEST(FromTorch, RefusesParametersThatLibTorchHasNot) {
  const at::Tensor weight = torch::ones({1}).requires_grad_();
  const at::Tensor other = torch::ones({1}).requires_grad_();
  const std::vector<std::function<void(Optimizer&)>> changes = {
      [&](Optimizer& one) { one.param_groups()[0].params.push_back(other); },
      [&](Optimizer& one) { one.param_groups()[0].params = {other}; },
      [&](Optimizer& one) { one.param_groups()[0].params.clear(); },
      [&](Optimizer& one) { one.param_groups().clear(); }};
  torch::optim::SGD without(std::vector{weight}, 0.1);
  const auto wrapper = from_torch(without);
  wrapper->param_groups().clear();
  without.param_groups().clear();
  EXPECT_NO_THROW(wrapper->step()) << "both have none";
  for (const auto& change : changes) {
    torch::optim::SGD sgd(std::vector{weight}, 0.1);
    const auto optimizer = from_torch(sgd);
    change(*optimizer);
    sgd.param_groups()[0].options().set_lr(0.2);
    try {
      optimizer->step();
      ADD_FAILURE();
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(
          error.error().message,
          testing::AnyOf(
              HasSubstr("the parameters of group 0 were changed"),
              HasSubstr("has 0 parameter groups, expected 1")));
    }
  }
}

// What one wrapper keeps, another one of the same optimizer has.
TEST(FromTorch, WrappersOfOneOptimizerShareTheirGroups) {
  torch::nn::Sequential net = three_layers();
  torch::optim::SGD sgd(net->parameters(), 0.1);
  const auto first = from_torch(sgd);
  const auto second = from_torch(sgd);
  EXPECT_EQ(first->identity(), second->identity());
  first->param_groups()[0].set("comment", "mine");
  first->param_groups()[0].set_lr(0.3);
  EXPECT_EQ(sgd.param_groups()[0].options().get_lr(), 0.1);
  first->apply_options();
  EXPECT_EQ(sgd.param_groups()[0].options().get_lr(), 0.3);
  EXPECT_NE(second->param_groups()[0].find("comment"), nullptr);
}

} // namespace
} // namespace lockstep
