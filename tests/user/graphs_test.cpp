// SPDX-License-Identifier: BSD-3-Clause
//
// Gradients of ordinary programs that do a little more than forward, backward,
// step: several passes before one backward, hooks, inputs that are changed in
// place, tensors that are no parameters.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/replica_error.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::error_of;
using testing::HasSubstr;

class OnDevices : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] torch::Device home() const {
    return parse_devices(GetParam()).front();
  }
  [[nodiscard]] Tensor here(const Tensor& tensor) const {
    return tensor.to(home());
  }
};

INSTANTIATE_TEST_SUITE_P(
    Programs,
    OnDevices,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

nn::Linear linear(int in = 4, int out = 3) {
  torch::manual_seed(5);
  return nn::Linear(in, out);
}

bool close(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() &&
         torch::allclose(a.cpu(), b.cpu(), 1e-4, 1e-5);
}

TEST_P(OnDevices, TwoForwardsBeforeTheirBackwards) {
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
TEST_P(OnDevices, AStepBeforeTheBackwardIsTheErrorOfOneDevice) {
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

TEST_P(OnDevices, HooksSeeTheSumOnceFromTwoBackwardThreads) {
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

TEST_P(OnDevices, AnOutputMayBeAParameterItself) {
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
TEST_P(OnDevices, ABackwardInsideForwardReachesParametersOfReplicaZero) {
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

// The first layer works in place.
struct InPlaceImpl : nn::Cloneable<InPlaceImpl> {
  InPlaceImpl() {
    reset();
  }
  void reset() override {
    torch::manual_seed(2);
    fc = register_module("fc", nn::Linear(4, 3));
  }
  Tensor forward(const Tensor& x) {
    return fc->forward(torch::relu_(const_cast<Tensor&>(x)));
  }
  nn::Linear fc = nullptr;
};

TEST_P(OnDevices, AFirstLayerInPlaceWorksAsOnOneDevice) {
  const auto run = [&](auto& module, bool again) {
    const auto leaf =
        here(torch::linspace(-1, 1, 24).view({6, 4})).requires_grad_();
    const auto x = leaf * 2;
    auto loss = module->forward(x).pow(2).sum();
    if (again) {
      loss = loss + (x * 3).sum(); // x is relu(leaf * 2) now
    }
    loss.backward();
    return std::vector<Tensor>{loss.detach(), leaf.grad(), x.detach()};
  };
  for (const bool again : {false, true}) {
    auto alone = std::make_shared<InPlaceImpl>();
    alone->to(home());
    auto net = std::make_shared<InPlaceImpl>();
    net->to(home());
    DataParallel model(net, {.devices = GetParam()});
    const auto expected = run(alone, again);
    const auto got = run(model, again);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(got[i], expected[i])) << i << " again " << again;
    }
    EXPECT_TRUE(close(net->fc->weight.grad(), alone->fc->weight.grad()));
  }
}

TEST_P(OnDevices, AFirstLayerInPlaceChangesTheCallersBatch) {
  auto net = std::make_shared<InPlaceImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::linspace(-1, 1, 24).view({6, 4}));
  const auto expected = x.clone().relu();
  model->forward(x).sum().backward();
  EXPECT_TRUE(close(x, expected));
}

TEST_P(OnDevices, AFirstLayerInPlaceOnALeafIsLibTorchsError) {
  auto net = std::make_shared<InPlaceImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::ones({6, 4})).requires_grad_();
  EXPECT_THAT(
      error_of([&] { model->forward(x); }).message,
      HasSubstr("a leaf Variable that requires grad"));
  const auto y = here(torch::ones({24}).requires_grad_() * 2).view({6, 4});
  EXPECT_THAT(
      error_of([&] { model->forward(y); }).message,
      HasSubstr("forward changes input 0 in place"));
}

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
class OnCpu : public OnDevices {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    OnCpu,
    testing::Values("cpu*2", "cpu*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(OnCpu, APlainMemberGetsItsGradient) {
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

TEST_P(OnCpu, ATensorComputedOutsideIsNamed) {
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

// A factory makes the plain member anew: each replica has one of its own.
TEST_P(OnCpu, AMemberThatEachReplicaHasForItselfIsNamed) {
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
    step();
  });
  EXPECT_THAT(error.message, HasSubstr("a tensor torch.Size([3]) of its own"));
  EXPECT_THAT(error.hint, HasSubstr("register_parameter"));
}

// Leaves that forward itself makes are nobody's: a gradient penalty.
TEST_P(OnDevices, LeavesMadeInForwardAreFine) {
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

TEST_P(OnDevices, ForwardInsideItsOwnForwardIsAnError) {
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

// Embeddings with sparse gradients; simulated devices have no sparse tensors.
TEST_P(OnCpu, SparseGradientsAreSummed) {
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
