// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors that take gradients and are neither parameters nor inputs, and
// gradients that are sparse.
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::close;
using test::error_of;
using testing::HasSubstr;

class Leaves : public test::OnDevices {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    Leaves,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

using test::AnyImpl;
using test::expect_same;

// A tensor beside the parameters.
struct ScaledImpl : nn::Cloneable<ScaledImpl> {
  explicit ScaledImpl(Tensor scale_) : scale(std::move(scale_)) {
    reset();
  }
  void reset() override {
    torch::manual_seed(2);
    fc = register_module("fc", nn::Linear(4, 3));
  }
  Tensor forward(const Tensor& x) {
    return fc->forward(x) * scale;
  }
  nn::Linear fc = nullptr;
  Tensor scale;
};

// On the CPU only: on devices LibTorch itself refuses a tensor of another one.
class LeavesOnCpu : public test::OnDevices {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    LeavesOnCpu,
    testing::Values("cpu*2", "cpu*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(LeavesOnCpu, APlainMemberGetsItsGradient) {
  const auto one = torch::ones({3}, torch::requires_grad());
  const auto two = torch::ones({3}, torch::requires_grad());
  auto alone = std::make_shared<ScaledImpl>(one);
  auto net = std::make_shared<ScaledImpl>(two);
  DataParallel model(net, {.devices = GetParam()});
  const auto x = torch::randn({6, 4});
  for (int pass = 0; pass < 2; ++pass) {
    alone->forward(x).pow(2).sum().backward();
    model->forward(x).pow(2).sum().backward();
  }
  EXPECT_TRUE(close(two.grad(), one.grad()));
  EXPECT_TRUE(close(net->fc->weight.grad(), alone->fc->weight.grad()));
}

TEST_P(LeavesOnCpu, ATensorComputedOutsideIsNamed) {
  const auto leaf = torch::ones({3}, torch::requires_grad());
  auto net = std::make_shared<ScaledImpl>(leaf.exp());
  DataParallel model(net, {.devices = GetParam()});
  const Error error = error_of([&] { model->forward(torch::ones({6, 4})); });
  EXPECT_THAT(
      error.message,
      HasSubstr("computed outside of it (ExpBackward0)"));
  DataParallel connected(net, {.devices = GetParam(), .connected_graph = true});
  connected->forward(torch::ones({6, 4})).sum().backward();
  EXPECT_TRUE(leaf.grad().defined());
}

// Moved to each device in forward: the leaf is one, its copies are several.
TEST_P(Leaves, ALeafOutsideGetsItsGradientOnce) {
  const auto leaf = torch::full({1}, 3.0).requires_grad_();
  expect_same(
      GetParam(),
      [&leaf](AnyImpl& net, const Tensor& x) {
        return x * leaf.to(x.device()) * net.weight;
      },
      [&](const auto& forward, AnyImpl& net) {
        leaf.mutable_grad().reset();
        forward(here(torch::ones({6, 1}))).sum().backward();
        return std::vector<Tensor>{leaf.grad().clone(), net.weight.grad()};
      });
}

TEST_P(LeavesOnCpu, APlainMembersHooksSeeTheSumOnce) {
  const auto scale = torch::ones({3}, torch::requires_grad());
  int calls = 0;
  scale.register_hook([&calls](const Tensor&) { ++calls; });
  auto net = std::make_shared<ScaledImpl>(scale);
  DataParallel model(net, {.devices = GetParam()});
  model->forward(torch::randn({6, 4})).sum().backward();
  EXPECT_EQ(calls, 1);
}

// A factory makes the plain member anew: each replica has one of its own.
TEST_P(LeavesOnCpu, AMemberThatEachReplicaHasForItselfIsNamed) {
  const auto make = [] {
    return std::make_shared<ScaledImpl>(
        torch::ones({3}, torch::requires_grad()));
  };
  DataParallel model(make(), {.devices = GetParam(), .factory = make});
  // LibTorch's clone() would share the member.
  model->group().rebuild();
  const auto step = [&] {
    model->forward(torch::ones({6, 4})).sum().backward();
  };
  const Error error = error_of([&] {
    step();
    {
      const torch::NoGradGuard no_grad; // an evaluation between
      model->forward(torch::ones({6, 4}));
    }
    step();
  });
  EXPECT_THAT(error.message, HasSubstr("a tensor torch.Size([3]) of its own"));
  EXPECT_THAT(error.hint, HasSubstr("register_parameter"));
}

// Leaves that forward itself makes are nobody's: a gradient penalty.
TEST_P(Leaves, LeavesMadeInForwardAreFine) {
  struct PenaltyImpl : nn::Module {
    PenaltyImpl() {
      fc = register_module("fc", nn::Linear(4, 1));
    }
    Tensor forward(const Tensor& x) {
      const auto point = x.detach().requires_grad_();
      const auto out = fc->forward(point).tanh();
      const auto slope = torch::autograd::grad(
          {out.sum()},
          {point},
          {},
          /*retain_graph=*/true,
          /*create_graph=*/true);
      return slope[0].pow(2).sum(1);
    }
    nn::Linear fc = nullptr;
  };
  const auto make = [] {
    torch::manual_seed(4);
    return std::make_shared<PenaltyImpl>();
  };
  auto alone = make();
  auto net = make();
  net->to(home());
  DataParallel model(net, {.devices = GetParam(), .factory = make});
  const auto x = torch::randn({6, 4});
  for (int pass = 0; pass < 3; ++pass) {
    alone->forward(x).sum().backward();
    model->forward(here(x)).sum().backward();
  }
  EXPECT_TRUE(close(net->fc->weight.grad(), alone->fc->weight.grad()));
}

// Each shard uses an expert of its own, so that replica 0 does not use all
// parameters, and a leaf that nobody else knows.
TEST_P(Leaves, LeavesMadeBesideExpertsOfAShardAreFine) {
  struct ExpertsImpl : nn::Cloneable<ExpertsImpl> {
    ExpertsImpl() {
      reset();
    }
    void reset() override {
      a = register_module("a", nn::Linear(4, 4));
      b = register_module("b", nn::Linear(4, 4));
    }
    Tensor forward(const Tensor& x) {
      const auto shift = torch::zeros_like(x).set_requires_grad(true);
      return (x[0][0].item<double>() > 0 ? a : b)(x + shift);
    }
    nn::Linear a = nullptr;
    nn::Linear b = nullptr;
  };
  auto net = std::make_shared<ExpertsImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::linspace(1, -1, 24).view({6, 4}));
  for (int pass = 0; pass < 3; ++pass) {
    model->forward(x).sum().backward();
  }
  EXPECT_TRUE(close(
      net->a->bias.grad() + net->b->bias.grad(),
      here(torch::full({4}, 18.0))));
}

// Embeddings with sparse gradients; simulated devices have no sparse tensors.
TEST_P(LeavesOnCpu, SparseGradientsAreSummed) {
  const auto make = [] {
    torch::manual_seed(3);
    return nn::Embedding(nn::EmbeddingOptions(10, 4).sparse(true));
  };
  nn::Embedding alone = make();
  nn::Embedding net = make();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto words = torch::arange(12).remainder(7);
  torch::optim::SGD one(alone->parameters(), 0.1);
  torch::optim::SGD many(model->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    one.zero_grad();
    alone->forward(words).pow(2).sum().backward();
    one.step();
    many.zero_grad();
    model->forward(here(words)).pow(2).sum().backward();
    many.step();
  }
  EXPECT_TRUE(close(net->weight, alone->weight));
}

} // namespace
} // namespace lockstep
