// SPDX-License-Identifier: BSD-3-Clause
//
// What Python's data-parallel tutorials show, with their numbers: the toy run,
// layers by index and by name, methods beside forward. On devices:
// tests/sim/tutorial_test.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/samplers.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/parallel/nets.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using ::testing::ElementsAre;

std::vector<std::string> keys_of(const nn::Module& module) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : state_dict(module).entries) {
    keys.push_back(key);
  }
  return keys;
}

// PyTorch 2.13's numbers for seed 0: dataset, Linear(5, 2), shuffled loader.
TEST(Tutorial, ToyRunHasPythonsNumbers) {
  constexpr std::array kFirst{-0.473120, 0.268302, -1.396227, -1.661295};
  constexpr std::array kSums{8.35107, 6.96317, 6.19188, 3.77391};
  constexpr double kPrinted = 1e-4; // the digits that are known
  for (const char* devices : {"cpu", "cpu*2", "cpu*3", "cpu*8"}) {
    torch::manual_seed(0);
    const auto data = std::make_shared<RandomDataset>(5, 100);
    nn::Linear net(5, 2);
    EXPECT_NEAR(data->data().sum().item<double>(), 32.307945, kPrinted);
    EXPECT_NEAR(data->data()[0][4].item<double>(), 0.84871, kPrinted);
    EXPECT_NEAR(net->weight.sum().item<double>(), -0.593229, kPrinted);
    EXPECT_NEAR(net->bias[1].item<double>(), -0.120338, kPrinted);
    DataParallel model(net, {.devices = devices});
    Loader loader(data, {.batch_size = 30});
    loader.start_epoch(RandomSampler(100).next_epoch(), 0);
    std::vector<std::int64_t> rows;
    while (const auto batch = loader.next()) {
      const std::size_t b = rows.size();
      rows.push_back(batch->size());
      const auto output = model->forward(batch->images);
      EXPECT_EQ(output.sizes(), (at::IntArrayRef{rows.back(), 2}));
      EXPECT_NEAR(batch->images[0][0].item<double>(), kFirst.at(b), kPrinted);
      EXPECT_NEAR(output.sum().item<double>(), kSums.at(b), kPrinted);
    }
    EXPECT_THAT(rows, ElementsAre(30, 30, 30, 10)) << devices;
  }
}

TEST(Tutorial, SequentialByIndexInsideTheWrapper) {
  nn::Sequential net(
      nn::Conv2d(1, 20, 5),
      nn::ReLU(),
      nn::Conv2d(20, 64, 5),
      nn::ReLU());
  EXPECT_THAT(
      keys_of(*net),
      ElementsAre("0.weight", "0.bias", "2.weight", "2.bias"));
  DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_EQ(model->module()->ptr(2), net[2]);
  EXPECT_EQ(keys_of(*model)[0], "module.0.weight");
}

TEST(Tutorial, SequentialByNameInsideTheWrapper) {
  nn::Sequential net(
      {{"conv1", nn::AnyModule(nn::Conv2d(1, 20, 5))},
       {"relu1", nn::AnyModule(nn::ReLU())}});
  EXPECT_EQ(net->named_children()["conv1"], net->ptr(0));
  EXPECT_THAT(keys_of(*net), ElementsAre("conv1.weight", "conv1.bias"));
  DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_THAT(
      keys_of(*model),
      ElementsAre("module.conv1.weight", "module.conv1.bias"));
  const auto x = torch::randn({4, 1, 6, 6});
  // A batch of another size may meet another kernel: other roundings.
  EXPECT_TRUE(torch::allclose(model->forward(x), net->forward(x), 1e-5, 1e-5));
}

// A method beside forward, and a member that is no parameter.
struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return fc->forward(x);
  }
  [[nodiscard]] torch::Tensor loss(const torch::Tensor& output) const {
    return (output - goal).square().mean();
  }
  nn::Linear fc = nullptr;
  double goal = 2;
};
TORCH_MODULE(Net);

TEST(Tutorial, MethodsOfTheModuleStayReachable) {
  DataParallel model(Net(), {.devices = "cpu*2"});
  const auto output = model->forward(torch::ones({6, 4}));
  model->module()->loss(output).backward();
  EXPECT_TRUE(model->module()->fc->weight.grad().defined());
  model->module()->goal = 3;
  EXPECT_EQ(model->module()->loss(torch::ones({1})).item<float>(), 4.0F);
}

TEST(Tutorial, ModelMadeByNameGivesItsOwnType) {
  DataParallel model(make_model("resnet18"), {.devices = "cpu*2"});
  EXPECT_EQ(model->module<ResNet>()->fc->weight.size(0), 1000);
  EXPECT_EQ(keys_of(*model).size(), 122U);
}

TEST(Tutorial, ATensorIsCopiedAModuleIsMovedInPlace) {
  const auto tensor = torch::ones({2});
  const auto copy = tensor.to(torch::kDouble);
  EXPECT_EQ(tensor.scalar_type(), torch::kFloat);
  EXPECT_FALSE(copy.is_alias_of(tensor));
  nn::Linear net(3, 2);
  const auto parameter = net->weight;
  net->to(torch::kDouble);
  EXPECT_EQ(parameter.scalar_type(), torch::kDouble);
}

TEST(Tutorial, CudnnBenchmarkIsASwitchOfLibTorch) {
  auto& context = at::globalContext();
  const bool before = context.benchmarkCuDNN();
  context.setBenchmarkCuDNN(true);
  EXPECT_TRUE(context.benchmarkCuDNN());
  context.setBenchmarkCuDNN(before);
}

} // namespace
} // namespace lockstep
