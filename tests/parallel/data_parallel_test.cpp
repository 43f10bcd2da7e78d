// SPDX-License-Identifier: BSD-3-Clause
//
// Forward: shards, buffers, following the master, devices, names.
#include "lockstep/parallel/data_parallel.h"

#include <filesystem>
#include <mutex>
#include <numeric>

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/optim/scheduler.h"
#include "tests/parallel/nets.h"

namespace lockstep {
namespace {

using test::bits_equal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Notes down how many rows each call saw, by row count; adds a bias.
struct RecorderImpl : torch::nn::Cloneable<RecorderImpl> {
  RecorderImpl() {
    reset();
  }
  void reset() override {
    bias = register_parameter("bias", torch::zeros({1}));
  }
  at::Tensor forward(const at::Tensor& x) {
    const std::lock_guard lock(seen->first);
    seen->second.push_back(x.dim() > 0 ? x.size(0) : 0);
    return x + bias;
  }
  // Shared by the copies: a clone copies this pointer.
  std::shared_ptr<std::pair<std::mutex, std::vector<std::int64_t>>> seen =
      std::make_shared<std::pair<std::mutex, std::vector<std::int64_t>>>();
  at::Tensor bias = {};
};
TORCH_MODULE(Recorder);

std::vector<std::int64_t> shard_rows(std::int64_t rows, int devices) {
  const Recorder recorder;
  DataParallel model(recorder, {.devices = "cpu*" + std::to_string(devices)});
  const auto x = torch::randn({rows, 5});
  EXPECT_TRUE(bits_equal(model->forward(x), x));
  auto seen = recorder->seen->second;
  std::ranges::sort(seen, std::greater<>());
  return seen;
}

TEST(DataParallelShards, AreThoseOfTheNotes) {
  EXPECT_THAT(shard_rows(30, 1), ElementsAre(30));
  EXPECT_THAT(shard_rows(30, 2), ElementsAre(15, 15));
  EXPECT_THAT(shard_rows(30, 3), ElementsAre(10, 10, 10));
  EXPECT_THAT(shard_rows(30, 7), ElementsAre(5, 5, 5, 5, 5, 5));
  EXPECT_THAT(shard_rows(30, 8), ElementsAre(4, 4, 4, 4, 4, 4, 4, 2));
  EXPECT_THAT(shard_rows(10, 2), ElementsAre(5, 5));
  EXPECT_THAT(shard_rows(10, 3), ElementsAre(4, 4, 2));
  EXPECT_THAT(shard_rows(10, 8), ElementsAre(2, 2, 2, 2, 2));
  EXPECT_THAT(shard_rows(6, 4), ElementsAre(2, 2, 2));
  EXPECT_THAT(shard_rows(5, 8), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(shard_rows(1, 2), ElementsAre(1));
  EXPECT_THAT(shard_rows(0, 3), ElementsAre(0, 0, 0));
}

TEST(DataParallelShards, ZeroDimensionalInputHasTorchsText) {
  DataParallel model(Recorder(), {.devices = "cpu*2"});
  try {
    model->forward(torch::tensor(1.0));
    FAIL() << "no error";
  } catch (const c10::Error& e) {
    EXPECT_THAT(
        e.what(),
        HasSubstr("chunk expects at least a 1-dimensional tensor"));
  }
}

TEST(DataParallelShards, OtherDimension) {
  torch::manual_seed(1);
  torch::nn::Linear linear(4, 3);
  DataParallel model(linear, {.devices = "cpu*2", .dim = 1});
  const auto x = torch::randn({3, 7, 4});
  EXPECT_TRUE(
      torch::allclose(model->forward(x), linear->forward(x), 1e-5, 1e-6));
}

TEST(DataParallel, NoBatchNormEqualsOneDevice) {
  torch::manual_seed(3);
  auto net = test::mlp();
  const auto x = test::images(30);
  const auto expected = net->forward(x);
  for (const char* devices : {"cpu", "cpu*2", "cpu*3", "cpu*7"}) {
    DataParallel model(net, {.devices = devices});
    EXPECT_TRUE(torch::allclose(model->forward(x), expected, 0, 1e-6))
        << devices;
  }
}

TEST(DataParallel, BatchNormKeepsReplicaZerosStatistics) {
  torch::manual_seed(3);
  auto net = test::conv_net();
  auto by_hand = test::conv_net();
  test::copy_state(*net, *by_hand);
  DataParallel model(net, {.devices = "cpu*2"});
  for (int step = 0; step < 3; ++step) {
    const auto x = test::images(9);
    model->forward(x);
    by_hand->forward(x.narrow(0, 0, 5));
  }
  const auto got = net->named_buffers();
  ASSERT_EQ(got.size(), 6U);
  for (const auto& item : by_hand->named_buffers()) {
    EXPECT_TRUE(bits_equal(got[item.key()], item.value())) << item.key();
  }
}

TEST(DataParallel, ReplicasStartFromTheMastersBuffers) {
  auto net = test::conv_net();
  DataParallel model(net, {.devices = "cpu*3"});
  model->forward(test::images(9));
  model->eval();
  const auto x = test::images(9);
  const torch::NoGradGuard no_grad;
  // In eval the statistics are used, so every replica must have replica 0's.
  EXPECT_TRUE(torch::allclose(model->forward(x), net->forward(x), 0, 1e-6));
}

TEST(DataParallel, ParametersAreNotCopied) {
  auto net = test::conv_net();
  DataParallel model(net, {.devices = "cpu*3"});
  model->forward(test::images(6));
  const auto mine = net->parameters();
  for (std::size_t replica = 1; replica < 3; ++replica) {
    const auto theirs = model->group().replica(replica).parameters();
    ASSERT_EQ(theirs.size(), mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(theirs[i].data_ptr(), mine[i].data_ptr());
      EXPECT_FALSE(theirs[i].is_same(mine[i]));
    }
  }
  EXPECT_EQ(&model->group().replica(0), net.get());
}

TEST(DataParallel, FollowsSetDataFlagsModesAndReplacedChildren) {
  torch::manual_seed(5);
  auto net = test::mlp(0.5);
  DataParallel model(net, {.devices = "cpu*2"});
  const auto x = test::images(8);
  model->forward(x);

  net->eval();
  auto weight = net[1]->named_parameters()["weight"];
  weight.set_data(torch::ones_like(weight));
  EXPECT_TRUE(torch::allclose(model->forward(x), net->forward(x), 1e-5, 1e-6));
  EXPECT_FALSE(model->group().replica(1).is_training());

  weight.set_requires_grad(false);
  model->forward(x);
  EXPECT_FALSE(model->group().replica(1).parameters()[0].requires_grad());

  // A child in a mode of its own keeps it.
  net->train();
  net[3]->eval();
  model->forward(x);
  EXPECT_TRUE(model->group().replica(1).is_training());
  EXPECT_FALSE(model->group().replica(1).children()[3]->is_training());

  net->push_back(torch::nn::Linear(10, 4));
  EXPECT_EQ(model->forward(x).sizes(), (at::IntArrayRef{8, 4}));
}

TEST(DataParallel, RebuildCopiesPlainMembers) {
  auto net = test::mlp(0.5);
  DataParallel model(net, {.devices = "cpu*2"});
  net[3]->as<torch::nn::Dropout>()->options.p(0.0);
  model->group().rebuild();
  const auto x = test::images(8);
  EXPECT_TRUE(torch::allclose(model->forward(x), net->forward(x), 0, 1e-6));
}

TEST(DataParallel, WrappingDrawsNoRandomNumbers) {
  auto net = test::conv_net();
  torch::manual_seed(9);
  const auto expected = torch::rand({1}).item<float>();
  torch::manual_seed(9);
  DataParallel model(net, {.devices = "cpu*4"});
  model->forward(torch::ones({4, 1, 8, 8}));
  EXPECT_EQ(torch::rand({1}).item<float>(), expected);
}

TEST(DataParallel, NoGradAndInferenceModeReachTheReplicas) {
  DataParallel model(test::conv_net(), {.devices = "cpu*2"});
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(model->forward(test::images(4)).requires_grad());
  }
  {
    const c10::InferenceMode inference;
    EXPECT_TRUE(model->forward(test::images(4)).is_inference());
  }
  EXPECT_TRUE(model->forward(test::images(4)).requires_grad());
}

TEST(DataParallel, AutocastReachesTheReplicas) {
  DataParallel model(test::mlp(), {.devices = "cpu*2"});
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const auto dtype = model->forward(test::images(4)).scalar_type();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_EQ(dtype, at::kBFloat16);
}

TEST(DataParallel, IsPrefixAndName) {
  DataParallel model(test::mlp(), {.devices = "cpu*2"});
  EXPECT_EQ(model->named_parameters().keys()[0], "module.1.weight");
  EXPECT_EQ(model->name(), "DataParallel");
  EXPECT_EQ(model->parameters().size(), 4U);
}

TEST(DataParallel, GivesTheModuleTyped) {
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_EQ(model->module().get(), net.get());
  EXPECT_EQ(model->module<torch::nn::SequentialImpl>()->size(), 4U);
  EXPECT_THROW(
      static_cast<void>(model->module<torch::nn::LinearImpl>()),
      Exception);
}

TEST(DataParallel, OneDeviceIsAPlainCall) {
  auto net = test::mlp(0.5);
  DataParallel model(net, {.devices = "cpu"});
  const auto x = test::images(4);
  torch::manual_seed(2);
  const auto expected = net->forward(x);
  torch::manual_seed(2);
  EXPECT_TRUE(bits_equal(model->forward(x), expected));
}

TEST(DataParallel, HolderForms) {
  auto net = test::mlp();
  DataParallel from_pointer(net.ptr(), {.devices = "cpu*2"});
  DataParallel<torch::nn::SequentialImpl> assigned = nullptr;
  EXPECT_TRUE(assigned.is_empty());
  assigned = from_pointer;
  EXPECT_EQ(assigned->devices().size(), 2U);
  DataParallel plain(net);
  EXPECT_GE(plain->devices().size(), 1U);
}

TEST(DataParallel, BadOptionsAreNamed) {
  auto net = test::mlp();
  const auto code_of = [&](DataParallelOptions options) {
    try {
      DataParallel model(net, std::move(options));
    } catch (const Exception& e) {
      return e.error().code;
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(
      code_of({.devices = "cpu*2", .device_ids = {0}}),
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      code_of({.devices = "cpu*2", .output_device = "cpu*2"}),
      ErrorCode::kInvalidArgument);
  EXPECT_THROW(
      DataParallel(std::shared_ptr<torch::nn::LinearImpl>()),
      Exception);
}

// Not cloneable: registers in the constructor, from an argument.
struct Plain : torch::nn::Module {
  explicit Plain(std::int64_t width)
      : fc(register_module("fc", torch::nn::Linear(4, width))) {}
  at::Tensor forward(const at::Tensor& x) {
    return fc->forward(x);
  }
  torch::nn::Linear fc;
};

TEST(DataParallel, FactoryServesModulesThatCannotBeCloned) {
  torch::manual_seed(4);
  auto net = std::make_shared<Plain>(3);
  try {
    DataParallel model(net, {.devices = "cpu*2"});
    FAIL() << "no error";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(e.error().hint, HasSubstr(".factory"));
  }
  DataParallel model(net, {.devices = "cpu*2", .factory = [] {
                             return std::make_shared<Plain>(3);
                           }});
  const auto x = torch::randn({6, 4});
  EXPECT_TRUE(torch::allclose(model->forward(x), net->forward(x), 0, 1e-6));
  EXPECT_THROW(
      DataParallel(
          net,
          {.devices = "cpu*2",
           .factory = [] { return std::make_shared<Plain>(5); }}),
      Exception);
}

// Returns its loss: one scalar per replica.
struct MeanImpl : torch::nn::Cloneable<MeanImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    return x.mean();
  }
};
TORCH_MODULE(Mean);

TEST(DataParallel, ScalarsBecomeAVector) {
  DataParallel model(Mean(), {.devices = "cpu*2"});
  auto x = torch::arange(6, torch::kFloat).requires_grad_();
  const auto out = model->forward(x);
  ASSERT_EQ(out.sizes(), (at::IntArrayRef{2}));
  EXPECT_EQ(out[0].item<float>(), 1.0F);
  EXPECT_EQ(out[1].item<float>(), 4.0F);
  out.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), torch::full({6}, 1.0F / 3)));
}

TEST(DataParallelOptimizer, IsTheNotesWay) {
  auto net = test::mlp();
  DataParallelOptimizer optimizer(
      std::make_shared<torch::optim::SGD>(net->parameters(), 0.5));
  const auto before = net->parameters()[0].detach().clone();
  net->forward(test::images(2)).sum().backward();
  optimizer->module()->step();
  EXPECT_FALSE(torch::equal(net->parameters()[0], before));
  EXPECT_EQ(optimizer->module()->param_groups().size(), 1U);
}

/// What the optimizer and its schedule save after a step, and after loading
/// that into others like them.
template <class T>
void expect_a_round_trip() {
  auto net = test::mlp();
  const DataParallelOptimizer optimizer(
      std::make_shared<T>(net->parameters(), 0.5));
  StepLR schedule(*optimizer->module(), {.step_size = 1, .gamma = 0.5});
  net->forward(test::images(2)).sum().backward();
  optimizer->module()->step();
  schedule.step();
  const ckpt::Value state = optimizer.state_dict();
  const ckpt::Value group = state.find("param_groups")->elements()->at(0);
  EXPECT_EQ(*group.find("lr")->number(), 0.25);
  EXPECT_EQ(*group.find("initial_lr")->number(), 0.5);

  const DataParallelOptimizer other(
      std::make_shared<T>(net->parameters(), 0.1));
  other.load_state_dict(state);
  EXPECT_EQ(ckpt::to_text(other.state_dict()), ckpt::to_text(state));
  const StepLR second(*other->module(), {.step_size = 1, .last_epoch = 1});
  EXPECT_EQ(other->module()->param_groups()[0].options().get_lr(), 0.025);
}

TEST(DataParallelOptimizer, SavesLibTorchsOptimizers) {
  expect_a_round_trip<torch::optim::SGD>();
  expect_a_round_trip<torch::optim::Adam>();
  expect_a_round_trip<torch::optim::AdamW>();
  expect_a_round_trip<torch::optim::RMSprop>();
  expect_a_round_trip<torch::optim::Adagrad>();
}

// As of a lambda that is not mutable, where forward is a template.
TEST(DataParallel, TakesConstTemporaries) {
  const torch::nn::Sequential net(torch::nn::Linear(3, 2));
  DataParallel model(net, {.devices = "cpu*2"});
  const at::Tensor x = torch::randn({4, 3});
  const auto apply = [x, &model] {
    return model->forward(static_cast<const at::Tensor&&>(x));
  };
  EXPECT_TRUE(torch::allclose(apply(), net.ptr()->forward(x)));
}

} // namespace
} // namespace lockstep
