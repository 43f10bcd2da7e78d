// SPDX-License-Identifier: BSD-3-Clause
//
// Parameter groups of an optimizer around one rank's part.
#include <algorithm>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/ckpt/print.h"
#include "lockstep/distributed/zero_redundancy_optimizer.h"
#include "tests/distributed/three_layers.h"
#include "tests/support/thread_ranks.h"

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

} // namespace
} // namespace lockstep
