// SPDX-License-Identifier: BSD-3-Clause
//
// Parameter groups of optimizers around others: ours around LibTorch's, and
// those of one rank's part.
#include <algorithm>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/ckpt/print.h"
#include "lockstep/dist/thread_ranks.h"
#include "lockstep/dist/zero_redundancy_optimizer.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/scheduler.h"
#include "tests/dist/three_layers.h"

namespace lockstep {
namespace {

using dist::ProcessGroup;
using dist::run_thread_ranks;
using test::backward;
using test::expect_equal_nets;
using test::make_sgd;
using test::three_layers;
using testing::Each;
using testing::HasSubstr;

// Each rank's own optimizer has the names of its part.
TEST(Zero, NamedParametersStayNamed) {
  const auto named = [](const torch::nn::Module& net, bool is_reversed) {
    ParamGroup all = named_parameters(net);
    std::vector<ckpt::Value> names = *all.find("param_names")->elements();
    if (is_reversed) {
      std::ranges::reverse(all.params);
      std::ranges::reverse(names);
    }
    all.set("param_names", ckpt::List{.items = names});
    return all;
  };
  for (const int ranks : {2, 8}) {
    const auto errors = run_thread_ranks(ranks, [&](const ProcessGroup& group) {
      auto net = three_layers();
      auto other = three_layers();
      ZeroRedundancyOptimizer zero(named(*net, false), make_sgd, group);
      const auto whole = make_sgd(named(*other, false));
      for (int step = 0; step < 4; ++step) {
        backward(net, step);
        backward(other, step);
        zero.step();
        whole->step();
        zero.consolidate_state_dict(0);
        if (group.rank() == 0) {
          EXPECT_EQ(
              ckpt::to_text(*zero.state_dict().find("param_groups")),
              ckpt::to_text(*whole->state_dict().find("param_groups")));
        }
        zero.load_state_dict(whole->state_dict());
      }
      expect_equal_nets(net, other);
      zero.load_state_dict(make_sgd(named(*other, true))->state_dict());
    });
    EXPECT_THAT(errors, Each(HasSubstr("names the parameters of a group")));
  }
}

// Of the optimizer within: who kept a pointer steps it.
TEST(Zero, ScheduleOfLibTorchCounts) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    torch::optim::SGD* raw = nullptr;
    const at::Tensor weight = torch::zeros({1}, torch::requires_grad());
    const at::Tensor other = torch::zeros({1}, torch::requires_grad());
    ZeroRedundancyOptimizer zero(
        std::vector{weight, other},
        [&](const Params& part) {
          auto sgd = std::make_unique<torch::optim::SGD>(
              part.groups().front().params,
              1.0);
          raw = sgd.get();
          return from_torch(std::move(sgd));
        },
        group);
    torch::optim::StepLR schedule(*raw, 1, 0.5);
    // LibTorch's first step keeps the rate.
    for (const double expected : {-1.0, -2.0, -2.5}) {
      zero.zero_grad();
      (weight + other).sum().backward();
      zero.step();
      schedule.step();
      EXPECT_EQ(weight.item<double>(), expected);
      EXPECT_EQ(other.item<double>(), expected);
    }
    EXPECT_EQ(zero.param_groups()[0].lr(), 0.25);
    zero.param_groups()[0].set_lr(1);
    schedule.step();
    zero.step();
  });
  EXPECT_THAT(errors, Each(HasSubstr("was changed twice since the last step")));
}

class WarningCount : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {
    ++count;
  }
  int count = 0;
};

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

} // namespace
} // namespace lockstep
