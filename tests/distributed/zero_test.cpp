// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizers whose state is spread over the ranks, against the same ones whole.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/zero_redundancy_optimizer.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/optim/schedules.h"
#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/distributed/three_layers.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::ProcessGroup;
using dist::run_thread_ranks;
using test::backward;
using test::batch_of;
using test::expect_equal_nets;
using test::make_sgd;
using test::three_layers;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

/// The state's tensors, by parameter and name, and which parameters have any.
void expect_equal_states(const ckpt::Value& found, const ckpt::Value& whole) {
  const auto states = whole.find("state")->as_dict();
  ASSERT_EQ(found.find("state")->as_dict()->items.size(), states->items.size());
  for (const auto& [number, state] : states->items) {
    const auto own = found.find("state")->find(*number.as_int());
    ASSERT_NE(own, nullptr);
    for (const auto& [key, value] : state.as_dict()->items) {
      if (value.as_tensor() != nullptr) {
        EXPECT_TRUE(torch::equal(
            to_tensor(*own->find(key.text())->as_tensor()),
            to_tensor(*value.as_tensor())))
            << key.text();
      }
    }
  }
  EXPECT_EQ(
      found.find("param_groups")
          ->elements()
          ->at(0)
          .find("params")
          ->elements()
          ->size(),
      6U);
}

std::unique_ptr<Optimizer> make_adamw(Params part) {
  return std::make_unique<AdamW>(std::move(part), AdamOptions{.lr = 0.05});
}
std::unique_ptr<Optimizer> make_torch_adam(const Params& part) {
  return from_torch(std::make_unique<torch::optim::Adam>(
      part.groups().front().params,
      torch::optim::AdamOptions(0.05)));
}

class Zero : public testing::TestWithParam<MakeOptimizer> {};

INSTANTIATE_TEST_SUITE_P(
    Optimizers,
    Zero,
    testing::Values(make_adamw, make_sgd, make_torch_adam));

// On more ranks than there are parameters, too.
TEST_P(Zero, TrainsToTheBitsOfTheWholeOptimizer) {
  for (const int ranks : {1, 3, 8}) {
    const auto errors = run_thread_ranks(ranks, [&](const ProcessGroup& group) {
      auto net = three_layers();
      auto other = three_layers();
      ZeroRedundancyOptimizer zero(net->parameters(), GetParam(), group);
      const auto whole = GetParam()(other->parameters());
      for (int step = 0; step < 5; ++step) {
        zero.zero_grad();
        whole->zero_grad(true);
        backward(net, step);
        backward(other, step);
        if (step == 3) { // a schedule
          zero.param_groups()[0].set_lr(0.01);
          whole->param_groups()[0].set_lr(0.01);
        }
        zero.step();
        whole->step();
      }
      expect_equal_nets(net, other);
      zero.consolidate_state_dict(ranks - 1);
      if (group.rank() == ranks - 1) {
        expect_equal_states(zero.state_dict(), whole->state_dict());
      }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST_P(Zero, AStateGoesOnWithAnotherNumberOfRanksAndAlone) {
  ckpt::Value saved;
  auto trained = three_layers();
  const auto first = run_thread_ranks(3, [&](const ProcessGroup& group) {
    auto net = three_layers();
    ZeroRedundancyOptimizer zero(net->parameters(), GetParam(), group);
    for (int step = 0; step < 3; ++step) {
      zero.zero_grad();
      backward(net, step);
      zero.step();
    }
    zero.consolidate_state_dict();
    if (group.rank() == 0) {
      saved = zero.state_dict();
      trained = net;
    }
  });
  EXPECT_THAT(first, Each(IsEmpty()));
  const auto copy = [&] {
    auto net = three_layers();
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < net->parameters().size(); ++i) {
      net->parameters()[i].copy_(trained->parameters()[i]);
    }
    return net;
  };
  auto alone = copy();
  const auto whole = GetParam()(alone->parameters());
  whole->load_state_dict(saved);
  for (int step = 3; step < 5; ++step) {
    whole->zero_grad(true);
    backward(alone, step);
    whole->step();
  }
  const auto second = run_thread_ranks(2, [&](const ProcessGroup& group) {
    auto net = copy();
    ZeroRedundancyOptimizer zero(net->parameters(), GetParam(), group);
    zero.load_state_dict(saved);
    for (int step = 3; step < 5; ++step) {
      zero.zero_grad();
      backward(net, step);
      zero.step();
    }
    expect_equal_nets(net, alone);
  });
  EXPECT_THAT(second, Each(IsEmpty()));
}

/// What one of three ranks with 2, 4 and 6 batches ends with; `shards`: its
/// optimizer is one part of three.
torch::nn::Sequential train_uneven(
    const ProcessGroup& group,
    const MakeOptimizer& make,
    bool shards,
    bool finds_unused) {
  auto net = three_layers();
  DistributedDataParallel model(
      net,
      {.process_group = group, .find_unused_parameters = finds_unused});
  const std::unique_ptr<Optimizer> optimizer =
      shards ? std::unique_ptr<Optimizer>(
                   new ZeroRedundancyOptimizer(net->parameters(), make, group))
             : make(net->parameters());
  JoinOptions options;
  if (shards) {
    options.after_backward = [&] { optimizer->step(); };
  }
  const auto train = [&] {
    for (int step = 0; step < 2 + 2 * group.rank(); ++step) {
      optimizer->zero_grad(true);
      const at::Tensor inputs = batch_of(step + group.rank());
      model->forward(inputs).pow(2).mean().backward();
      optimizer->step();
    }
  };
  model->join(train, options);
  return net;
}

// Ranks without inputs keep their part of the state going: all ranks end with
// the parameters that whole optimizers give.
TEST_P(Zero, TrainsWithUnevenInputsToTheBitsOfTheWholeOptimizer) {
  for (const bool finds_unused : {false, true}) {
    const auto errors = run_thread_ranks(3, [&](const ProcessGroup& group) {
      const auto whole = train_uneven(group, GetParam(), false, finds_unused);
      const auto parts = train_uneven(group, GetParam(), true, finds_unused);
      expect_equal_nets(parts, whole);
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST(ZeroErrors, AStateThatWasNotBroughtIsNamedInPythonsWords) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    auto net = three_layers();
    ZeroRedundancyOptimizer zero(net->parameters(), make_sgd, group);
    zero.consolidate_state_dict(1);
    static_cast<void>(zero.state_dict());
  });
  EXPECT_THAT(
      errors[0],
      HasSubstr("Optimizer state has not been consolidated on this rank. "
                "Please call `consolidate_state_dict(to=0)`"));
  EXPECT_THAT(errors[1], IsEmpty());
}

TEST(ZeroErrors, AnotherOptimizersStateIsRefused) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    auto net = three_layers();
    ZeroRedundancyOptimizer zero(net->parameters(), make_sgd, group);
    torch::nn::Linear other(2, 2);
    SGD one(other->parameters(), {.lr = 0.1});
    zero.load_state_dict(one.state_dict());
  });
  EXPECT_THAT(
      errors,
      Each(HasSubstr("contains a parameter group that doesn't match the size "
                     "of optimizer's group")));
}

// The parameters of the other group would never be trained.
TEST(Zero, RefusesAnOptimizerOfOtherGroups) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    torch::nn::Sequential net = three_layers();
    const std::vector<ParamGroup> groups{
        {.params = net[0]->as<torch::nn::Linear>()->parameters()},
        {.params = net[1]->as<torch::nn::Linear>()->parameters()}};
    try {
      const ZeroRedundancyOptimizer optimizer(
          groups,
          [](const Params& part) {
            return from_torch(std::make_unique<torch::optim::SGD>(
                part.groups().front().params,
                0.1));
          },
          group);
      ADD_FAILURE();
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().detail, "E_ZERO_GROUPS");
      EXPECT_THAT(
          error.error().message,
          HasSubstr("has 1 parameter group, expected 2"));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Its parameters would be trained on no rank, or on all.
TEST(Zero, RefusesAGroupThatIsAddedLater) {
  for (const bool within : {false, true}) {
    const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
      const at::Tensor weight = at::ones({1}).requires_grad_();
      const at::Tensor thawed = at::ones({1}).requires_grad_();
      SGD* inner = nullptr;
      ZeroRedundancyOptimizer zero(
          std::vector{weight},
          [&](const Params& part) {
            auto sgd = std::make_unique<SGD>(part, SGDOptions{.lr = 0.1});
            inner = sgd.get();
            return sgd;
          },
          group);
      zero.step();
      if (within) {
        inner->add_param_group({.params = {thawed}});
      } else {
        zero.param_groups().push_back({.params = {thawed}});
      }
      zero.step();
    });
    EXPECT_THAT(
        errors,
        Each(HasSubstr("has 2 parameter groups, expected 1: the parameters are "
                       "shared out when ZeroRedundancyOptimizer is made")));
  }
}

} // namespace
} // namespace lockstep
