// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that do a little more than forward, backward, step: several passes
// before one backward, hooks in two threads, gradients inside forward.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/replica_group.h"
#include "tests/user/programs.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::close;
using test::error_of;
using testing::HasSubstr;

class Graphs : public test::OnDevices {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    Graphs,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

using test::any;
using test::AnyImpl;
using test::expect_same;
using test::linear;
using test::times_weight;

TEST_P(Graphs, TwoForwardsBeforeTheirBackwards) {
  nn::Linear alone = linear();
  nn::Linear net = linear();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = torch::randn({6, 4});
  const auto run = [&](auto& module) {
    const auto a = module->forward(here(x)).tanh();
    const auto b = module->forward(here(x * 2)).sigmoid();
    (a * b).sum().backward();
    const auto c = module->forward(here(x)).sum();
    const auto d = module->forward(here(x - 1)).pow(2).sum();
    d.backward();
    c.backward();
  };
  alone->to(home());
  run(alone);
  run(model);
  EXPECT_TRUE(close(net->weight.grad(), alone->weight.grad()));
  EXPECT_TRUE(close(net->bias.grad(), alone->bias.grad()));
}

// A step between forward and backward is LibTorch's error on one device, where
// backward needs the old weight.
TEST_P(Graphs, AStepBeforeTheBackwardIsTheErrorOfOneDevice) {
  nn::Sequential net(nn::Linear(4, 4), nn::Linear(4, 2));
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::randn({6, 4}));
  const auto late = [&](const auto& forward) {
    return test::torch_error([&] {
      const auto loss = forward().sum();
      {
        const torch::NoGradGuard no_grad;
        for (Tensor& parameter : net->parameters()) {
          parameter.mul_(0.5);
        }
        forward();
      }
      loss.backward();
    });
  };
  const auto expected = HasSubstr("has been modified by an inplace operation");
  EXPECT_THAT(late([&] { return net->forward(x); }), expected);
  std::string text;
  try {
    text = late([&] { return model->forward(x); });
  } catch (const ReplicaError& e) {
    text = e.what();
  }
  EXPECT_THAT(text, expected);
}

TEST_P(Graphs, HooksSeeTheSumOnceFromTwoBackwardThreads) {
  nn::Linear net = linear();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::ones({6, 4}));
  std::atomic<int> calls = 0;
  std::atomic<int> wrong = 0;
  net->weight.register_hook([&](const Tensor& grad) {
    ++calls;
    wrong += close(grad, torch::full({3, 4}, 6.0)) ? 0 : 1;
  });
  constexpr int kPasses = 40;
  const auto run = [&] {
    for (int i = 0; i < kPasses; ++i) {
      model->forward(x).sum().backward();
    }
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_EQ(calls, 2 * kPasses);
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(close(net->weight.grad(), torch::full({3, 4}, 12.0 * kPasses)));
}

TEST_P(Graphs, AnOutputMayBeAParameterItself) {
  struct ParameterOutImpl : nn::Cloneable<ParameterOutImpl> {
    ParameterOutImpl() {
      reset();
    }
    void reset() override {
      weight = register_parameter("weight", torch::ones({1, 4}));
    }
    std::vector<Tensor> forward(const Tensor& x) {
      return {x * weight, weight};
    }
    Tensor weight;
  };
  auto net = std::make_shared<ParameterOutImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto out = model->forward(here(torch::ones({6, 4})));
  (out[0].sum() + 10 * out[1].sum()).backward();
  const auto replicas = static_cast<double>(model->devices().size());
  EXPECT_TRUE(
      close(net->weight.grad(), torch::full({1, 4}, 6 + 10 * replicas)));
}

// What a backward inside forward leaves on replica 0 is the parameter's, with
// its hooks.
TEST_P(Graphs, ABackwardInsideForwardReachesParametersOfReplicaZero) {
  struct SlopeImpl : nn::Cloneable<SlopeImpl> {
    SlopeImpl() {
      reset();
    }
    void reset() override {
      fc = register_module("fc", nn::Linear(4, 1));
    }
    Tensor forward(const Tensor& x) {
      const auto out = fc->forward(x);
      const auto grads = torch::autograd::grad({out.sum()}, {fc->weight});
      return out.detach() + grads[0].sum();
    }
    nn::Linear fc = nullptr;
  };
  torch::manual_seed(1);
  auto net = std::make_shared<SlopeImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::ones({6, 4}));
  const auto expected =
      net->fc->forward(x) + 24.0 / static_cast<double>(model->devices().size());
  EXPECT_TRUE(close(model->forward(x), expected));
}
TEST_P(Graphs, GradientsTurnedOnInsideForward) {
  expect_same(
      GetParam(),
      [](AnyImpl& net, const Tensor& x) {
        const torch::AutoGradMode on(true);
        return x * net.weight;
      },
      [&](const auto& forward, AnyImpl& net) {
        const auto x = here(torch::ones({6, 1})).requires_grad_();
        int calls = 0;
        net.weight.register_hook([&calls](const Tensor&) { ++calls; });
        Tensor out;
        {
          const torch::NoGradGuard no_grad;
          out = forward(x);
        }
        out.sum().backward();
        return std::vector<Tensor>{
            net.weight.grad(),
            torch::tensor(calls),
            out.detach()};
      });
}

TEST_P(Graphs, ABackwardInsideForwardIsNamed) {
  const auto stepping = [](AnyImpl& net, const Tensor& x) {
    (x.detach() * net.weight).sum().backward();
    return x * net.weight;
  };
  const auto net = any(stepping, home());
  DataParallel model(net, {.devices = GetParam(), .factory = [&] {
                             return any(stepping, home());
                           }});
  EXPECT_THAT(
      error_of([&] {
        model->forward(here(torch::ones({6, 1})));
      }).message,
      HasSubstr("by another way than from the results"));
}

// A factory that fails leaves the replicas as they were.
TEST_P(Graphs, AFailedRebuildChangesNothing) {
  bool fails = false;
  const auto net = any(times_weight, home());
  DataParallel model(net, {.devices = GetParam(), .factory = [&] {
                             if (fails) {
                               throw std::runtime_error("no module today");
                             }
                             return any(times_weight, home());
                           }});
  const auto x = here(torch::ones({6, 1}));
  fails = true;
  EXPECT_THROW(model->group().rebuild(), std::runtime_error);
  {
    const torch::NoGradGuard no_grad;
    net->weight.fill_(7);
  }
  EXPECT_TRUE(close(model->forward(x), torch::full({6, 1}, 7.0)));
}

TEST(OutOfMemory, IsMadeUpForByTheNextPass) {
  nn::Linear net = linear(512, 512);
  net->to(test::sim(0));
  DataParallel model(net, {.devices = "sim*2"});
  const auto x = torch::randn({256, 512}, test::sim(0));
  const torch::NoGradGuard no_grad;
  model->forward(x);
  net->weight.mul_(2);
  // The shard of 256 KiB fits, the transfer of the weight does not.
  set_sim_memory_limit(1, sim_counters(1).used_bytes + (300 << 10));
  const Error error = error_of([&] { model->forward(x); });
  EXPECT_THAT(error.message, HasSubstr("in replica 1 on device sim:1."));
  set_sim_memory_limit(1, 0);
  const auto small = x.slice(0, 0, 8);
  EXPECT_TRUE(close(model->forward(small), net->forward(small)));
}

TEST(OutOfMemory, IsMadeUpForWithTrustedVersionsToo) {
  nn::Linear net = linear(512, 512);
  net->to(test::sim(0));
  DataParallel model(net, {.devices = "sim*2", .trust_versions = true});
  const auto x = torch::randn({8, 512}, test::sim(0));
  const torch::NoGradGuard no_grad;
  model->forward(x);
  net->weight.mul_(2);
  net->bias.mul_(2); // both travel in one block
  set_sim_memory_limit(1, sim_counters(1).used_bytes + (300 << 10));
  EXPECT_NE(error_of([&] { model->forward(x); }).message, "no error");
  set_sim_memory_limit(1, 0);
  EXPECT_TRUE(close(model->forward(x), net->forward(x)));
}

// Each replica runs one more step of the other's kind.
struct ReentrantImpl : nn::Cloneable<ReentrantImpl> {
  ReentrantImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) {
    return again ? again(fc->forward(x)) : fc->forward(x);
  }
  nn::Linear fc = nullptr;
  std::function<Tensor(const Tensor&)> again;
};

TEST_P(Graphs, ForwardInsideItsOwnForwardIsAnError) {
  auto net = std::make_shared<ReentrantImpl>();
  net->to(home());
  auto other = std::make_shared<ReentrantImpl>();
  other->to(home());
  DataParallel inner(other, {.devices = GetParam()});
  DataParallel<ReentrantImpl> model = nullptr;
  net->again = [&model](const Tensor& x) { return model->forward(x); };
  model = DataParallel(net, {.devices = GetParam()});
  const auto x = here(torch::ones({6, 4}));
  EXPECT_THAT(
      error_of([&] { model->forward(x); }).message,
      HasSubstr("called inside a replica of its own"));
  // Through another group, too.
  other->again = [&model](const Tensor& y) { return model->forward(y); };
  inner->group().rebuild();
  net->again = [&inner](const Tensor& y) { return inner->forward(y); };
  model->group().rebuild();
  EXPECT_THAT(
      error_of([&] { model->forward(x); }).message,
      HasSubstr("called inside a replica of its own"));
}

} // namespace
} // namespace lockstep
