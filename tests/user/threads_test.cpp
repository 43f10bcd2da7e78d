// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that use one wrapper from several threads.
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"

namespace lockstep {
namespace {

using Tensor = torch::Tensor;
using test::any;
using test::AnyImpl;

class Threads : public test::OnDevices {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    Threads,
    testing::Values("cpu*2", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

struct TwoHeadsImpl : torch::nn::Cloneable<TwoHeadsImpl> {
  TwoHeadsImpl() {
    reset();
  }
  void reset() override {
    body = register_module("body", torch::nn::Linear(8, 8));
  }
  std::vector<Tensor> forward(const Tensor& x) {
    const auto y = body->forward(x).tanh();
    return {y.sin(), y.cos()};
  }
  torch::nn::Linear body = nullptr;
};

// Without retain_graph either may find parts of the graph gone: an error, never
// a crash, and the next step is as ever.
TEST_P(Threads, TwoBackwardsOfOnePassWithoutRetainGraph) {
  auto net = std::make_shared<TwoHeadsImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  for (int pass = 0; pass < 200; ++pass) {
    const auto outputs = model->forward(here(torch::ones({4, 8})));
    {
      std::vector<std::jthread> threads;
      for (const Tensor& output : outputs) {
        threads.emplace_back([output] {
          try {
            output.sum().backward();
          } catch (const std::exception&) {
            // "... backward through the graph a second time ..."
          }
        });
      }
    }
  }
  net->zero_grad();
  net->forward(here(torch::ones({4, 8})))[0].sum().backward();
  const auto expected = net->body->weight.grad().clone();
  net->zero_grad();
  model->forward(here(torch::ones({4, 8})))[0].sum().backward();
  EXPECT_TRUE(test::close(net->body->weight.grad(), expected));
}

// A large tensor of the CPU that all replicas share, and a forward that
// differentiates: the engine's thread must not wait for workers that wait for
// it.
TEST_P(Threads, AGradientInForwardBesideALargeSharedTensor) {
  const auto shared = torch::ones({70'000}, torch::requires_grad());
  const auto forward = [shared](AnyImpl& net, const Tensor& x) {
    const auto y = (x * net.weight).pow(2);
    const auto slope = torch::autograd::grad({y.sum()}, {net.weight}, {}, true);
    return y + slope[0].detach() + shared.sum().to(x.device());
  };
  DataParallel model(
      any(forward, home()),
      {.devices = GetParam(), .factory = [&] { return any(forward, home()); }});
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      for (int step = 0; step < 30; ++step) {
        model->forward(here(torch::ones({4, 1}))).sum().backward();
      }
    });
  }
}

} // namespace
} // namespace lockstep
