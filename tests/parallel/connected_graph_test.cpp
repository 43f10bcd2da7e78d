// SPDX-License-Identifier: BSD-3-Clause
//
// connected_graph: gradients of gradients through several replicas, and that
// everything else stays as without it.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/parallel/nets.h"

namespace lockstep {
namespace {

const DataParallelOptions kConnected{
    .devices = "cpu*3",
    .connected_graph = true};

// d/dw of |df/dx|^2, as for a gradient penalty.
std::vector<at::Tensor> penalty_gradients(
    const at::Tensor& out,
    const at::Tensor& x,
    const torch::nn::Module& net) {
  const auto first = torch::autograd::grad(
      {out.pow(2).sum()},
      {x},
      {},
      true,
      /*create_graph=*/true);
  return torch::autograd::grad({first[0].pow(2).sum()}, net.parameters());
}

TEST(ConnectedGraph, GivesGradientsOfGradients) {
  torch::nn::Sequential net(
      torch::nn::Linear(6, 5),
      torch::nn::Tanh(),
      torch::nn::Linear(5, 2));
  DataParallel model(net, kConnected);
  const auto x = torch::randn({7, 6}).requires_grad_();
  for (int pass = 0; pass < 2; ++pass) {
    const auto got = penalty_gradients(model->forward(x), x, *net);
    const auto want = penalty_gradients(net->forward(x), x, *net);
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(torch::allclose(got[i], want[i], 1e-4, 1e-6)) << i;
    }
    const torch::NoGradGuard no_grad;
    net->parameters()[0].mul_(0.5);
  }
}

TEST(ConnectedGraph, TrainsAsWithoutIt) {
  auto net = test::mlp();
  auto other = test::mlp();
  test::copy_state(*net, *other);
  DataParallel connected(net, kConnected);
  DataParallel apart(other, {.devices = "cpu*3"});
  torch::optim::SGD a(net->parameters(), 0.1);
  torch::optim::SGD b(other->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    const auto x = test::images(7);
    a.zero_grad();
    b.zero_grad();
    connected->forward(x).pow(2).mean().backward();
    apart->forward(x).pow(2).mean().backward();
    a.step();
    b.step();
  }
  for (std::size_t i = 0; i < net->parameters().size(); ++i) {
    EXPECT_TRUE(torch::allclose(
        net->parameters()[i],
        other->parameters()[i],
        1e-5,
        1e-6));
  }
}

TEST(ConnectedGraph, FollowsFrozenAndThawedParameters) {
  auto net = test::mlp();
  DataParallel model(net, kConnected);
  const auto x = test::images(6);
  auto weight = net->parameters()[0];
  const auto gradient_after = [&](bool requires_grad) {
    weight.set_requires_grad(requires_grad);
    net->zero_grad();
    model->forward(x).sum().backward();
    return weight.grad().defined();
  };
  EXPECT_TRUE(gradient_after(true));
  EXPECT_FALSE(gradient_after(false));
  EXPECT_TRUE(gradient_after(true));
}

} // namespace
} // namespace lockstep
