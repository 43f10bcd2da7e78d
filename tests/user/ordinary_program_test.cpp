// SPDX-License-Identifier: BSD-3-Clause
//
// The ordinary LibTorch program: a network without clone(), on the stack or
// not, and LibTorch's own types wherever devices are named.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::error_of;
using test::sim;
using testing::HasSubstr;

struct Digits : nn::Module {
  Digits() : conv(1, 4, 3), fc(4 * 36, 10) {
    register_module("conv", conv);
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) {
    return fc->forward(torch::relu(conv->forward(x)).flatten(1));
  }
  nn::Conv2d conv;
  nn::Linear fc;
};

struct Wide : nn::Module {
  explicit Wide(int width) : fc(4, width) {
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) {
    return fc->forward(x);
  }
  nn::Linear fc;
};

std::vector<double> train(
    nn::Module& module,
    const std::function<Tensor(const Tensor&)>& forward,
    const torch::Device& device) {
  torch::optim::SGD sgd(
      module.parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::manual_seed(9);
  const auto x = torch::randn({10, 1, 8, 8}).to(device);
  const auto y = torch::arange(10).to(device);
  std::vector<double> losses;
  for (int step = 0; step < 6; ++step) {
    sgd.zero_grad();
    const auto loss = nn::functional::cross_entropy(forward(x), y);
    loss.backward();
    sgd.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

class OrdinaryProgram : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Devices,
    OrdinaryProgram,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(OrdinaryProgram, WithANetworkOnTheStack) {
  torch::manual_seed(1);
  Digits alone;
  const auto expected = train(
      alone,
      [&](const Tensor& x) { return alone.forward(x); },
      torch::kCPU);
  const auto device = parse_devices(GetParam()).front();
  torch::manual_seed(1);
  Digits net;
  net.to(device);
  DataParallel model(net, {.devices = GetParam()});
  const auto got = train(
      *model,
      [&](const Tensor& x) { return model->forward(x); },
      device);
  EXPECT_THAT(got, testing::Pointwise(testing::DoubleNear(1e-5), expected));
  EXPECT_EQ(model->module().get(), &net);

  torch::manual_seed(1);
  Digits other;
  other.to(device);
  DataParallelImpl itself(other, {.devices = GetParam()});
  const auto again = train(
      itself,
      [&](const Tensor& x) { return itself.forward(x); },
      device);
  EXPECT_EQ(again, got);
}

TEST_P(OrdinaryProgram, WithASharedNetwork) {
  const auto device = parse_devices(GetParam()).front();
  const auto net = std::make_shared<Digits>();
  net->to(device);
  DataParallel model(net, {.devices = GetParam()});
  const auto x = torch::randn({10, 1, 8, 8}).to(device);
  EXPECT_TRUE(torch::allclose(
      model->forward(x).cpu(),
      net->forward(x).cpu(),
      1e-4,
      1e-5));
  // The module of a pointer, by reference, has the pointer's owner.
  DataParallel by_reference(*net, {.devices = GetParam()});
  EXPECT_EQ(by_reference->module(), net);
}

TEST(OrdinaryNetwork, ThatNeedsArgumentsIsToldTheLineToWrite) {
  Wide net(3);
  const Error error =
      error_of([&] { DataParallel model(net, {.devices = "cpu*2"}); });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("cannot be cloned"));
  EXPECT_THAT(
      error.hint,
      HasSubstr(".factory = [] { return std::make_shared<"));
  EXPECT_THAT(error.hint, HasSubstr("Wide>(...); }"));
  DataParallel model(net, {.devices = "cpu*2", .factory = [] {
                             return std::make_shared<Wide>(3);
                           }});
  EXPECT_EQ(model->forward(torch::ones({4, 4})).size(1), 3);
}

// What the constructor makes no longer fits: nothing is guessed.
TEST(OrdinaryNetwork, ThatWasChangedAfterItsConstructionNeedsAFactory) {
  Digits net;
  net.fc = net.replace_module("fc", nn::Linear(4 * 36, 5));
  const Error error =
      error_of([&] { DataParallel model(net, {.devices = "cpu*2"}); });
  EXPECT_THAT(error.hint, HasSubstr(".factory"));
  EXPECT_THAT(
      error.hint,
      HasSubstr("by replace_module or options, the factory makes the same"));
  // What the hint says first makes the old module.
  EXPECT_THAT(
      error_of([&] {
        DataParallel model(net, {.devices = "cpu*2", .factory = [] {
                                   return std::make_shared<Digits>();
                                 }});
      }).hint,
      HasSubstr("layers that went in with replace_module go in there, too"));
  DataParallel model(net, {.devices = "cpu*2", .factory = [] {
                             auto same = std::make_shared<Digits>();
                             same->fc = same->replace_module(
                                 "fc",
                                 nn::Linear(4 * 36, 5));
                             return same;
                           }});
}

// With default arguments the default constructor may make another module.
struct Gain : nn::Module {
  explicit Gain(double factor_ = 1) : factor(factor_), fc(4, 4) {
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) {
    return fc->forward(x) * factor;
  }
  double factor;
  nn::Linear fc;
};

TEST(OrdinaryNetwork, ThatMayTakeArgumentsNeedsAFactory) {
  Gain net(3);
  const Error error =
      error_of([&] { DataParallel model(net, {.devices = "cpu*2"}); });
  EXPECT_THAT(error.hint, HasSubstr(".factory"));
}

struct Dropped : nn::Module {
  Dropped() : drop(0.0), fc(4, 4) {
    register_module("drop", drop);
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) {
    return drop->forward(fc->forward(x));
  }
  nn::Dropout drop;
  nn::Linear fc;
};

TEST(OrdinaryNetwork, WhoseOptionsWereChangedNeedsAFactory) {
  Dropped net;
  EXPECT_NO_THROW(DataParallel(net, {.devices = "cpu*2"}));
  net.drop->options.p(1.0);
  const Error error =
      error_of([&] { DataParallel model(net, {.devices = "cpu*2"}); });
  EXPECT_THAT(error.hint, HasSubstr(".factory"));
}

// Their texts show nothing of it.
struct Smoothed : nn::Module {
  Smoothed() : fc(4, 4) {
    register_module("fc", fc);
    register_module("loss", loss);
  }
  Tensor forward(const Tensor& x, const Tensor& target) {
    return loss->forward(fc->forward(x), target);
  }
  nn::Linear fc;
  nn::CrossEntropyLoss loss;
};

TEST(OrdinaryNetwork, WhoseLossWasChangedComputesItEverywhere) {
  Smoothed net;
  net.loss->options.label_smoothing(0.3).reduction(torch::kNone);
  const auto x = torch::randn({6, 4});
  const auto target = torch::arange(6).remainder(4);
  DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_TRUE(torch::allclose(
      model->forward(x, target),
      net.forward(x, target),
      1e-5,
      1e-6));
}

struct Activated : nn::Module {
  Activated() : fc(4, 4), act(Activated::twice) {
    register_module("fc", fc);
    register_module("act", act);
  }
  static Tensor twice(Tensor x) {
    return x * 2;
  }
  static Tensor thrice(Tensor x) {
    return x * 3;
  }
  Tensor forward(const Tensor& x) {
    return act->forward(fc->forward(x));
  }
  nn::Linear fc;
  nn::Functional act;
};

TEST(OrdinaryNetwork, WhoseFunctionWasReplacedNeedsAFactory) {
  Activated net;
  EXPECT_NO_THROW(DataParallel(net, {.devices = "cpu*2"}));
  net.act = net.replace_module("act", nn::Functional(Activated::thrice));
  const Error error =
      error_of([&] { DataParallel model(net, {.devices = "cpu*2"}); });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.hint, HasSubstr(".factory"));
}

TEST(OrdinaryNetwork, AFactoryThatReturnsSomethingElseIsNamed) {
  Wide net(3);
  const auto message_of = [&](const ModuleFactory& factory) {
    return error_of([&] {
             DataParallel model(net, {.devices = "cpu*2", .factory = factory});
           })
        .message;
  };
  EXPECT_THAT(
      message_of([] { return std::shared_ptr<nn::Module>(); }),
      HasSubstr("returned no module"));
  EXPECT_THAT(
      message_of([] { return std::make_shared<Digits>(); }),
      testing::MatchesRegex(
          "the factory returned a .*Digits, expected a .*Wide"));
}

struct Thrower : nn::Module {
  Tensor forward(const Tensor& /*x*/) {
    throw 42;
  }
};

TEST(OrdinaryNetwork, ThatThrowsANumberIsReported) {
  Thrower net;
  DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_EQ(
      error_of([&] { model->forward(torch::ones({4})); }).message,
      "Caught an object that is no std::exception in replica 0 on device cpu");
}

TEST(OrdinaryNetwork, CannotHaveLessThanNoThreads) {
  Digits net;
  EXPECT_THAT(
      error_of([&] {
        DataParallel(net, {.devices = "cpu*2", .threads_per_replica = -1});
      }).message,
      HasSubstr("threads_per_replica is -1, expected 1 or more"));
}

TEST(OrdinaryNetwork, IsCalledLikeAnyHolder) {
  Digits net;
  DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_EQ(model(torch::ones({4, 1, 8, 8})).size(0), 4);
}

TEST(ConnectedGraph, FollowsAMoveAfterWrapping) {
  Digits net;
  DataParallel model(net, {.devices = "sim*2", .connected_graph = true});
  model->to(sim(0));
  model->forward(torch::ones({4, 1, 8, 8})).sum().backward();
  EXPECT_EQ(net.fc->weight.grad().device(), sim(0));
}

TEST(ConnectedGraph, FollowsAnotherDtypeAndBack) {
  nn::Linear net(4, 1);
  DataParallel model(net, {.devices = "cpu*2", .connected_graph = true});
  const auto grad_of = [&](auto& module) {
    return torch::autograd::grad(
        {module->forward(torch::ones({6, 4})).sum()},
        {net->weight})[0];
  };
  model->to(torch::kDouble);
  model->to(torch::kFloat);
  EXPECT_TRUE(torch::allclose(grad_of(model), grad_of(net), 1e-5, 1e-6));
}

TEST(Devices, AreTakenOneByOne) {
  const auto x = torch::ones({6, 4});
  nn::Linear net(4, 2);
  net->to(sim(1));
  const std::vector<torch::Device> two{sim(1), sim(2)};
  DataParallel model(net, {.devices = two, .output_device = sim(2)});
  EXPECT_EQ(model->devices()[1], sim(2));
  EXPECT_EQ(model->forward(x).device(), sim(2));
  DataParallel listed(net, {.devices = {sim(1), sim(3)}});
  EXPECT_EQ(listed->devices()[1], sim(3));
  DataParallel one(net, {.devices = sim(1)});
  EXPECT_EQ(one->devices().size(), 1U);
  const torch::Device cpu(torch::kCPU, 0); // the number means nothing
  net->to(cpu);
  DataParallel on_cpu(net, {.devices = {cpu, cpu}});
  EXPECT_EQ(on_cpu->devices().size(), 2U);
  EXPECT_EQ(on_cpu->forward(x).size(0), 6);
}

TEST(Devices, ThatCannotBeAreNamed) {
  const auto error = [](const DeviceSpec& spec) {
    return error_of([&spec] { static_cast<void>(spec.resolve()); }).message;
  };
  const torch::Device cpu(torch::kCPU);
  EXPECT_THAT(error({cpu, sim(0)}), HasSubstr("devices of one type"));
  EXPECT_THAT(error({sim(0), sim(0)}), HasSubstr("device 0 is named twice"));
  EXPECT_THAT(error(sim(30)), HasSubstr("sim:30 is not present"));
  EXPECT_THAT(error(torch::Device("xla:0")), HasSubstr("cpu, cuda or sim"));
  EXPECT_EQ(
      DeviceSpec(torch::Device(torch::kPrivateUse1)).resolve()[0],
      sim(0));
}

TEST(ShareThreads, IsOneCallForAnyOptimizer) {
  at::set_num_threads(2);
  nn::Linear net(4, 2);
  DataParallel model(net, {.devices = "cpu*2"});
  const int own = at::get_num_threads();
  SGD ours(model->parameters(), {.lr = 0.1});
  torch::optim::SGD stock(model->parameters(), 0.1);
  {
    const auto sharing = model->share_threads(ours, stock);
    EXPECT_EQ(at::get_num_threads(), 1);
    model->forward(torch::ones({6, 4})).sum().backward();
    ours.step();
    stock.step();
  }
  EXPECT_EQ(at::get_num_threads(), own);
  ours.step(); // alone again
  at::set_num_threads(1);
}

} // namespace
} // namespace lockstep
