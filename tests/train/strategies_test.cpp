// SPDX-License-Identifier: BSD-3-Clause
//
// What one device computes, all strategies compute: the mode of the module, and
// the steps of LibTorch's optimizers.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/train/strategy.h"
#include "tests/sim/support.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::train {
namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;

struct NormNet : nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return last->forward(norm->forward(frozen->forward(x) + 2));
  }
  nn::BatchNorm1d frozen = register_module("frozen", nn::BatchNorm1d(4));
  nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(4));
  nn::Linear last = register_module("last", nn::Linear(4, 3));
};

class StrategiesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()).starts_with("sim")) {
      parse_devices("sim*3"); // as many as other tests of this program want
    }
  }
  /// Halves with the same numbers: the mean of each is that of the whole.
  static Batch batch() {
    torch::manual_seed(2);
    const at::Tensor half = torch::randn({6, 4}) * 2 + 1;
    const at::Tensor targets = torch::tensor({0L, 1L, 2L, 0L, 1L, 2L});
    return {
        .images = torch::cat({half, half}),
        .targets = torch::cat({targets, targets})};
  }
  static std::shared_ptr<NormNet> net() {
    torch::manual_seed(1);
    return std::make_shared<NormNet>();
  }
  template <class M>
  static std::unique_ptr<Strategy> strategy(
      const std::shared_ptr<M>& net,
      const std::string& devices) {
    return make_strategy(net, {.devices = parse_devices(devices)});
  }
};

INSTANTIATE_TEST_SUITE_P(
    Trainer,
    StrategiesTest,
    ::testing::Values("cpu", "cpu*2", "sim*1", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(StrategiesTest, ANetInEvaluationModeTrains) {
  const auto means = [](Strategy& strategy, NormNet& net) {
    strategy.step(batch());
    EXPECT_TRUE(net.is_training() && net.norm->is_training());
    return net.norm->running_mean.cpu();
  };
  const auto one = net();
  one->eval();
  const at::Tensor expected = means(*strategy(one, "cpu"), *one);
  EXPECT_GT(expected.abs().sum().item<float>(), 0.0F);

  const auto same = net();
  const auto several = strategy(same, GetParam());
  same->eval(); // after the strategy is made, too
  EXPECT_TRUE(torch::allclose(means(*several, *same), expected, 1e-4, 1e-6));
  several->test(batch());
  EXPECT_TRUE(same->is_training());
  same->eval();
  several->test(batch());
  EXPECT_FALSE(same->is_training()) << "a test leaves the mode as it was";
  several->step(batch());
  EXPECT_TRUE(same->norm->is_training());
}

TEST_P(StrategiesTest, WhatIsFrozenInATrainingNetStaysFrozen) {
  const auto same = net();
  same->frozen->eval();
  const auto several = strategy(same, GetParam());
  several->step(batch());
  several->test(batch());
  several->step(batch());
  EXPECT_FALSE(same->frozen->is_training());
  EXPECT_EQ(same->frozen->running_mean.abs().sum().item<float>(), 0.0F);
  EXPECT_GT(same->norm->running_mean.abs().sum().item<float>(), 0.0F);
}

TEST(DistributedStrategy, ANetInEvaluationModeTrains) {
  const lockstep::test::ScratchDir dir;
  const auto group = dist::init_process_group(
      {.init_method = "file://" + (dir / "store"), .rank = 0, .world_size = 1});
  const auto net = std::make_shared<NormNet>();
  net->eval();
  const auto ranks = make_strategy(net, {.group = group});
  ranks->step(
      {.images = torch::randn({4, 4}),
       .targets = torch::zeros({4}, at::kLong)});
  EXPECT_TRUE(net->norm->is_training());
  EXPECT_GT(net->norm->running_mean.abs().sum().item<float>(), 0.0F);
  dist::destroy_process_group();
}

struct StockOptimizer {
  const char* name = "";
  std::function<std::unique_ptr<optim::Optimizer>(std::vector<at::Tensor>)>
      make = {};
};

template <class O, class Options>
StockOptimizer stock(const char* name, Options options) {
  return {name, [options](std::vector<at::Tensor> parameters) {
            return std::make_unique<O>(std::move(parameters), options);
          }};
}

const std::vector<StockOptimizer>& optimizers() {
  static const std::vector<StockOptimizer> all{
      stock<optim::SGD>("SGD", optim::SGDOptions(0.1)),
      stock<optim::SGD>(
          "momentum",
          optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1)),
      stock<optim::Adam>("Adam", optim::AdamOptions(0.05)),
      stock<optim::AdamW>("AdamW", optim::AdamWOptions(0.05)),
      stock<optim::Adagrad>("Adagrad", optim::AdagradOptions(0.1)),
      stock<optim::RMSprop>("RMSprop", optim::RMSpropOptions(0.05))};
  return all;
}

/// A net without anything that differs by the size of a shard.
std::shared_ptr<nn::Linear::ContainedType> linear() {
  torch::manual_seed(1);
  auto net = std::make_shared<nn::LinearImpl>(4, 3);
  net->to(at::kDouble);
  return net;
}

Batch doubles() {
  torch::manual_seed(3);
  return {
      .images = torch::randn({8, 4}, at::kDouble),
      .targets = torch::tensor({0L, 1L, 2L, 0L, 1L, 2L, 0L, 1L})};
}

/// Losses of steps and tests in turn. `by_strategy`: its `update` makes the
/// step, else the program's own call does.
std::vector<float> losses(
    const StockOptimizer& stock,
    const std::string& devices,
    bool by_strategy) {
  const auto net = linear();
  net->to(parse_devices(devices).front()); // Adagrad makes its state at once
  const auto optimizer = stock.make(net->parameters());
  const auto strategy = make_strategy(
      net,
      {.devices = parse_devices(devices), .optimizer = *optimizer});
  std::vector<float> losses;
  for (int step = 0; step < 4; ++step) {
    net->zero_grad();
    losses.push_back(strategy->step(doubles()).read().loss);
    if (by_strategy) {
      strategy->update();
    } else {
      optimizer->step();
    }
    losses.push_back(strategy->test(doubles()).read().loss);
    losses.push_back(strategy->test(doubles()).read().loss);
  }
  return losses;
}

TEST_P(StrategiesTest, StockOptimizersStepAllReplicas) {
  for (const StockOptimizer& stock : optimizers()) {
    for (const bool by_strategy : {true, false}) {
      const auto expected = losses(stock, "cpu", by_strategy);
      const auto got = losses(stock, GetParam(), by_strategy);
      EXPECT_LT(expected.back(), expected.front()) << stock.name;
      EXPECT_THAT(
          got,
          ::testing::Pointwise(::testing::FloatNear(1e-6F), expected))
          << stock.name << (by_strategy ? " by update()" : " by step()");
    }
  }
}

TEST_P(StrategiesTest, WeightsThatAProgramClampsAreThoseOfTheNextStep) {
  const auto run = [](const std::string& devices) {
    const auto net = linear();
    const auto strategy =
        make_strategy(net, {.devices = parse_devices(devices)});
    strategy->step(doubles());
    for (at::Tensor& parameter : net->parameters()) {
      parameter.data().clamp_(-0.01, 0.01); // nothing counts it
    }
    return std::vector{
        strategy->test(doubles()).read().loss,
        strategy->step(doubles()).read().loss};
  };
  EXPECT_THAT(
      run(GetParam()),
      ::testing::Pointwise(::testing::FloatNear(1e-6F), run("cpu")));
}

// Devices with memory of their own, to which weights are sent.
class CountedWeights : public StrategiesTest {};
INSTANTIATE_TEST_SUITE_P(
    Trainer,
    CountedWeights,
    ::testing::Values("sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(CountedWeights, AreSentOnceWhereNobodyChangesThem) {
  const auto net = linear();
  net->weight.set_requires_grad(false);
  SGD sgd(net->parameters(), {.lr = 0.1});
  EXPECT_TRUE(sgd.counts_writes());
  const auto strategy = make_strategy(
      net,
      {.devices = parse_devices(GetParam()), .optimizer = sgd});
  const auto sent = [&](bool is_counted) {
    const std::uint64_t before = sim_counters(1).bytes_in;
    net->zero_grad();
    strategy->step(doubles(), {.weights_are_counted = is_counted});
    const std::uint64_t after = sim_counters(1).bytes_in;
    strategy->update();
    return after - before;
  };
  const std::uint64_t all = sent(true);
  const std::uint64_t bias_alone = sent(true);
  EXPECT_EQ(all - bias_alone, 3 * 4 * sizeof(double));
  net->weight.data().fill_(0.5); // nothing counts it
  EXPECT_EQ(sent(false), all);
  sent(true);
  strategy->test(doubles());
  net->weight.data().fill_(0.25);
  strategy->update();
  EXPECT_NEAR(
      strategy->test(doubles()).read().loss,
      torch::cross_entropy_loss(
          torch::nn::functional::linear(
              doubles().images,
              net->weight.detach().cpu(),
              net->bias.detach().cpu()),
          doubles().targets)
          .item<float>(),
      1e-6);
}

TEST(FromTorch, ItsStepsAreCounted) {
  for (const StockOptimizer& stock : optimizers()) {
    const auto net = linear();
    const auto optimizer = from_torch(stock.make(net->parameters()));
    net->forward(doubles().images).square().mean().backward();
    const auto before = net->weight._version();
    optimizer->step();
    EXPECT_GT(net->weight._version(), before) << stock.name;
    EXPECT_TRUE(optimizer->counts_writes()) << stock.name;
  }
}

// LibTorch's schedulers write into LibTorch's groups, ours into ours.
TEST(FromTorch, GroupsOfBothSidesAreOne) {
  const auto make = [](const at::Tensor& param) {
    return std::make_unique<torch::optim::SGD>(
        std::vector<at::Tensor>{param},
        torch::optim::SGDOptions(1.0));
  };
  const at::Tensor param = torch::ones({1}).requires_grad_();
  const at::Tensor expected = torch::ones({1}).requires_grad_();
  auto sgd = make(param);
  torch::optim::Optimizer& raw = *sgd;
  const auto alone = make(expected);
  torch::optim::StepLR schedule(raw, /*step_size=*/1, /*gamma=*/0.1);
  torch::optim::StepLR same(*alone, /*step_size=*/1, /*gamma=*/0.1);
  const auto optimizer = from_torch(std::move(sgd));
  const auto step = [&] {
    param.mutable_grad() = torch::ones({1});
    optimizer->step();
    return param.item<float>();
  };
  for (int i = 0; i < 4; ++i) {
    expected.mutable_grad() = torch::ones({1});
    alone->step();
    EXPECT_EQ(step(), expected.item<float>()) << i;
    schedule.step();
    same.step();
    EXPECT_EQ(
        optimizer->param_groups()[0].lr(),
        alone->param_groups()[0].options().get_lr());
  }
  EXPECT_LT(optimizer->param_groups()[0].lr(), 0.01);
  static_cast<torch::optim::SGDOptions&>(raw.param_groups()[0].options())
      .weight_decay(0.5);
  const ckpt::Value state = optimizer->state_dict();
  const ckpt::Value& saved = state.find("param_groups")->elements()->at(0);
  EXPECT_EQ(saved.find("weight_decay")->number(), 0.5);
  const auto before = param.item<float>();
  optimizer->param_groups()[0].set_lr(0);
  EXPECT_EQ(step(), before);
  EXPECT_EQ(raw.param_groups()[0].options().get_lr(), 0);
  // Two schedules at once: neither knows of the other's.
  raw.param_groups()[0].options().set_lr(0.3);
  ParamGroup& group = optimizer->param_groups()[0];
  EXPECT_EQ(group.lr(), 0.3);
  raw.param_groups()[0].options().set_lr(0.4);
  group.set_lr(0.2);
  try {
    step();
    ADD_FAILURE() << "one of them was dropped";
  } catch (const Exception& error) {
    EXPECT_EQ(
        error.error().message,
        "'lr' of parameter group 0 was changed twice since the last step: to "
        "0.4 in LibTorch's optimizer, to 0.2 in param_groups()");
  }
}

// A layer that is thawed later.
TEST(FromTorch, AGroupThatIsAddedToLibTorchsIsThere) {
  const at::Tensor first = torch::ones({1}).requires_grad_();
  const at::Tensor second = torch::ones({1}).requires_grad_();
  auto sgd = std::make_unique<torch::optim::SGD>(
      std::vector<at::Tensor>{first},
      torch::optim::SGDOptions(1.0));
  torch::optim::Optimizer& raw = *sgd;
  const auto optimizer = from_torch(std::move(sgd));
  raw.add_param_group(torch::optim::OptimizerParamGroup({second}));
  ASSERT_EQ(optimizer->param_groups().size(), 2U);
  EXPECT_TRUE(optimizer->param_groups()[1].params.at(0).is_same(second));
  const ckpt::Value state = optimizer->state_dict();
  EXPECT_EQ(state.find("param_groups")->elements()->size(), 2U);
}

TEST(Strategy, AnOptimizerOutlivesTheThreadsThatItWasLent) {
  const auto net = std::make_shared<nn::LinearImpl>(512, 256); // worth threads
  SGD sgd(*net, {.lr = 0.1});
  const auto moved = [&] {
    const at::Tensor before = net->weight.detach().clone();
    net->forward(torch::ones({2, 512})).sum().backward();
    sgd.step();
    return !at::equal(net->weight, before);
  };
  {
    const auto strategy = make_strategy(
        net,
        {.devices = parse_devices("cpu*2"), .optimizer = sgd});
    EXPECT_TRUE(moved());
  }
  EXPECT_TRUE(moved());
}

TEST(Strategy, WithoutAnOptimizerThereIsNoUpdate) {
  const auto strategy = make_strategy(linear());
  try {
    strategy->update();
    FAIL() << "nothing would learn";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.error().hint, ::testing::HasSubstr(".optimizer = "));
  }
}

TEST(Strategy, WithoutClassesNoHitsAreCounted) {
  const auto net = linear();
  const auto strategy = make_strategy(net, {.task = {.loss = cross_entropy()}});
  const BatchScore score = strategy->test(doubles()).read();
  EXPECT_TRUE(score.sums.empty());
}

} // namespace
} // namespace lockstep::train
