// SPDX-License-Identifier: BSD-3-Clause
//
// Training on one simulated device gives the CPU's bits; random numbers,
// modules, files, streams and autocast behave as on an accelerator.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/model.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/sim/support.h"
#include "tests/support/memory_fs.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::same_bits;
using test::sim;
using test::torch_error;
using ::testing::HasSubstr;

std::vector<torch::Tensor> state_of(const nn::Module& module) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [key, value] : state_dict(module).entries) {
    tensors.push_back(value);
  }
  return tensors;
}

void expect_same_state(const nn::Module& a, const nn::Module& b) {
  const auto left = state_of(a);
  const auto right = state_of(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(same_bits(left[i], right[i])) << i;
  }
}

struct Trained {
  std::shared_ptr<Model> net;
  std::vector<torch::Tensor> losses = {};
};

// Two steps of SGD on fixed data, the model's and dropout's numbers from seed.
Trained train(const std::string& name, const torch::Device& device, int side) {
  torch::manual_seed(11);
  const auto images = torch::randn({4, 1, side, side});
  const auto labels = torch::randint(10, {4}, torch::kLong);
  Trained run{.net = make_model(name, {.num_classes = 10, .in_channels = 1})};
  run.net->to(device);
  torch::manual_seed(5);
  SGD sgd(
      run.net->parameters(),
      {.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4});
  for (int step = 0; step < 2; ++step) {
    sgd.zero_grad();
    const auto out = run.net->forward(images.to(device));
    const auto loss = torch::cross_entropy_loss(out, labels.to(device));
    loss.backward();
    sgd.step();
    run.losses.push_back(loss.detach());
  }
  return run;
}

TEST(SimTraining, ResNet18EqualsTheCpuBitForBit) {
  const Trained cpu = train("resnet18", torch::kCPU, 32);
  const Trained device = train("resnet18", sim(0), 32);
  EXPECT_EQ(device.losses[0].device(), sim(0));
  for (std::size_t i = 0; i < cpu.losses.size(); ++i) {
    EXPECT_TRUE(same_bits(cpu.losses[i], device.losses[i])) << i;
  }
  expect_same_state(*cpu.net, *device.net);
}

TEST(SimTraining, LibTorchOptimizersWorkAsWell) {
  const auto run = [](const torch::Device& device) {
    torch::manual_seed(2);
    nn::Sequential net(
        nn::Linear(8, 8),
        nn::LayerNorm(nn::LayerNormOptions({8})),
        nn::GELU(),
        nn::Linear(8, 1));
    const auto x = torch::randn({16, 8}).to(device);
    net->to(device);
    torch::optim::AdamW adam(net->parameters(), 0.01);
    for (int step = 0; step < 3; ++step) {
      adam.zero_grad();
      torch::mse_loss(net->forward(x), torch::ones({16, 1}, device)).backward();
      adam.step();
    }
    return net;
  };
  expect_same_state(*run(torch::kCPU), *run(sim(4)));
}

// These have a CPU kernel and one for any device; the first must be taken.
TEST(SimTraining, NormalisationsAreTheCpusKernels) {
  const auto value = torch::randn({6, 8, 5, 5});
  const auto run = [&](const torch::Device& device) {
    auto x = value.to(device).detach().requires_grad_();
    const auto w = torch::linspace(0.3, 2.1, 8).to(device);
    const auto y = torch::group_norm(x, 4, w, w, 1e-5) +
                   torch::layer_norm(x, {5, 5}, {}, {}, 1e-5);
    torch::mse_loss(torch::gelu(y), torch::zeros_like(y)).backward();
    return std::vector<torch::Tensor>{y.detach(), x.grad()};
  };
  const auto cpu = run(torch::kCPU);
  const auto device = run(sim(2));
  EXPECT_TRUE(same_bits(cpu[0], device[0]));
  EXPECT_TRUE(same_bits(cpu[1], device[1]));
}

TEST(SimRandom, EachDeviceDrawsTheCpusNumbers) {
  torch::manual_seed(7);
  const auto expected = torch::randn({100});
  const auto more = torch::randperm(50);
  for (const int index : {0, 3}) {
    EXPECT_TRUE(same_bits(torch::randn({100}, sim(index)), expected)) << index;
    EXPECT_TRUE(same_bits(
        torch::randperm(
            50,
            torch::TensorOptions(sim(index)).dtype(torch::kLong)),
        more));
  }
}

TEST(SimRandom, DropoutEqualsTheCpuForAnyRate) {
  for (const double rate : {0.1, 0.3, 0.5, 0.77}) {
    const auto value = torch::randn({1000});
    const auto run = [&](const torch::Device& device) {
      torch::manual_seed(3);
      auto x = value.to(device).detach().requires_grad_();
      const auto y = torch::dropout(x, rate, true);
      y.square().sum().backward();
      return std::vector<torch::Tensor>{y.detach(), x.grad()};
    };
    const auto cpu = run(torch::kCPU);
    const auto device = run(sim(1));
    EXPECT_TRUE(same_bits(cpu[0], device[0])) << rate;
    EXPECT_TRUE(same_bits(cpu[1], device[1])) << rate;
  }
}

TEST(SimRandom, DevicesDoNotDisturbEachOther) {
  torch::manual_seed(1);
  const auto first = torch::rand({10}, sim(1));
  const auto second = torch::rand({10}, sim(1));
  torch::manual_seed(1);
  EXPECT_TRUE(same_bits(torch::rand({10}, sim(1)), first));
  torch::rand({77}, sim(2));
  torch::rand({77});
  EXPECT_TRUE(same_bits(torch::rand({10}, sim(1)), second));
}

TEST(SimRandom, GeneratorsKeepTheirState) {
  const auto& hooks = at::detail::getPrivateUse1Hooks();
  at::Generator generator = hooks.getNewGenerator(2);
  generator.set_current_seed(9);
  EXPECT_EQ(generator.device(), sim(2));
  const auto state = generator.get_state();
  const auto first = torch::rand({4}, generator, sim(2));
  at::Generator copy = generator.clone();
  const auto second = torch::rand({4}, generator, sim(2));
  EXPECT_TRUE(same_bits(torch::rand({4}, copy, sim(2)), second));
  generator.set_state(state);
  EXPECT_TRUE(same_bits(torch::rand({4}, generator, sim(2)), first));
  EXPECT_THAT(
      torch_error(
          [] { torch::rand({4}, at::detail::createCPUGenerator(1), sim(2)); }),
      HasSubstr("Expected a 'sim' device type for generator but found 'cpu'"));
}

TEST(SimModule, MovesInPlaceAndBack) {
  auto net = nn::Linear(3, 2);
  const auto before = net->weight.clone();
  const auto parameter = net->weight;
  net->to(sim(2));
  EXPECT_EQ(net->weight.device(), sim(2));
  EXPECT_TRUE(parameter.is_same(net->weight));
  net->forward(torch::ones({1, 3}, sim(2))).sum().backward();
  EXPECT_EQ(net->weight.grad().device(), sim(2));
  net->to(torch::kDouble);
  EXPECT_EQ(net->weight.scalar_type(), torch::kDouble);
  net->to(torch::kCPU, torch::kFloat);
  EXPECT_TRUE(net->weight.is_cpu());
  EXPECT_TRUE(same_bits(net->weight, before));
}

TEST(SimModule, ClonesToADevice) {
  nn::Sequential net(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2));
  const auto copy = clone_module(*net, sim(5));
  for (const auto& tensor : state_of(*copy)) {
    EXPECT_EQ(tensor.device(), sim(5));
  }
  expect_same_state(*net, *copy);
  const auto copy_of_copy = clone_module(*copy);
  EXPECT_EQ(copy_of_copy->parameters()[0].device(), sim(5));
  EXPECT_FALSE(
      copy_of_copy->parameters()[0].is_alias_of(copy->parameters()[0]));
}

TEST(SimFiles, TensorsAreSavedAsCpu) {
  MemoryFs fs;
  auto net = nn::Linear(4, 3);
  net->to(sim(1));
  save({{"state_dict", state_dict(*net)}}, "a.pth", fs);
  const Checkpoint as_stored = load("a.pth", {}, fs);
  const auto weight = as_stored["state_dict"]["weight"];
  EXPECT_EQ(weight.to<ckpt::Tensor>().storage->location, "cpu");
  EXPECT_TRUE(same_bits(weight.to<at::Tensor>(), net->weight));

  const Checkpoint mapped = load("a.pth", {.map_location = sim(3)}, fs);
  const auto there = mapped["state_dict"]["weight"].to<at::Tensor>();
  EXPECT_EQ(there.device(), sim(3));
  EXPECT_TRUE(same_bits(there, net->weight));
  auto other = nn::Linear(4, 3);
  other->to(sim(2));
  load_state_dict(*other, as_stored["state_dict"]);
  EXPECT_EQ(other->weight.device(), sim(2));
  EXPECT_TRUE(same_bits(other->weight, net->weight));
}

TEST(SimStreams, AreNamesPerThreadAndDevice) {
  const c10::impl::VirtualGuardImpl impl(torch::kPrivateUse1);
  const auto standard = impl.getDefaultStream(sim(1));
  EXPECT_EQ(impl.getStream(sim(1)), standard);
  const auto side = impl.getStreamFromGlobalPool(sim(1));
  EXPECT_NE(side, standard);
  {
    const c10::StreamGuard guard(side);
    EXPECT_EQ(impl.getStream(sim(1)), side);
    EXPECT_EQ(impl.getStream(sim(2)), impl.getDefaultStream(sim(2)));
    const auto x = torch::ones({2}, sim(1));
    x.record_stream(side);
  }
  EXPECT_EQ(impl.getStream(sim(1)), standard);
  EXPECT_TRUE(side.query());
  side.synchronize();
}

TEST(SimStreams, EventsHaveHappened) {
  const c10::impl::VirtualGuardImpl impl(torch::kPrivateUse1);
  const auto stream = impl.getDefaultStream(sim(1));
  c10::Event first(torch::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  c10::Event second(torch::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  EXPECT_TRUE(first.query());
  first.record(stream);
  second.record(stream);
  second.block(impl.getStreamFromGlobalPool(sim(1)));
  second.synchronize();
  EXPECT_TRUE(second.query());
  EXPECT_GE(first.elapsedTime(second), 0.0);
}

TEST(SimPinned, MemoryIsRemembered) {
  const auto x = torch::randn({4});
  EXPECT_FALSE(x.is_pinned());
  const auto pinned = x.pin_memory();
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_TRUE(pinned.is_cpu());
  EXPECT_TRUE(pinned.pin_memory().is_same(pinned));
  EXPECT_TRUE(same_bits(pinned.to(sim(1), /*non_blocking=*/true), x));
  EXPECT_FALSE(torch::ones({1}, sim(0)).is_pinned());
}

TEST(SimAutocast, FollowsTheAcceleratorsLists) {
  const auto a = torch::randn({8, 8}, sim(1));
  const auto w =
      torch::randn({8, 8}, torch::TensorOptions(sim(1)).requires_grad(true));
  const auto expected =
      a.to(torch::kBFloat16).cpu().mm(w.detach().to(torch::kBFloat16).cpu());
  {
    const test::Autocast autocast;
    const auto y = a.mm(w);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    EXPECT_TRUE(same_bits(y.detach(), expected));
    EXPECT_EQ(torch::softmax(y, 1).scalar_type(), torch::kFloat);
    EXPECT_EQ((y + a).scalar_type(), torch::kFloat);
    // The CPU's autocast is another switch.
    EXPECT_EQ(a.cpu().mm(a.cpu()).scalar_type(), torch::kFloat);
    y.sum().backward();
  }
  EXPECT_EQ(w.grad().scalar_type(), torch::kFloat);
  EXPECT_EQ(a.mm(a).scalar_type(), torch::kFloat);
}

} // namespace
} // namespace lockstep
