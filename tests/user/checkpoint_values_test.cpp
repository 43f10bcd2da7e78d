// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint as scripts write it, of every part a program may have: Python
// reads it, and each part takes its entry back.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace program {
namespace {

namespace ls = lockstep;
namespace nn = torch::nn;
using testing::HasSubstr;

// A type of the program's own.
struct Metrics {
  double iou = 0;
  std::string name = {};
};

class CheckpointValues : public testing::Test {
 protected:
  CheckpointValues() {
    torch::manual_seed(0);
  }

  // One step, so that the optimizers have state.
  template <class Optimizer>
  static void step(nn::Linear& net, Optimizer& optimizer) {
    optimizer.zero_grad();
    net->forward(torch::ones({2, 4})).sum().backward();
    optimizer.step();
  }
  [[nodiscard]] std::string path() const {
    return dir_ / "checkpoint.pth.tar";
  }

  lockstep::test::ScratchDir dir_;
};

} // namespace
} // namespace program

template <>
struct lockstep::ckpt::ToValue<program::Metrics> {
  static Value get(const program::Metrics& metrics) {
    return Value::dict({{"iou", metrics.iou}, {"name", metrics.name}});
  }
};

template <>
struct lockstep::ckpt::FromValue<program::Metrics> {
  static program::Metrics get(const Entry& entry) {
    return {
        .iou = entry["iou"].to<double>(),
        .name = entry["name"].to<std::string>()};
  }
};

namespace program {
namespace {

TEST_F(CheckpointValues, OfEveryKindAreReadByPython) {
  nn::Linear net(4, 2);
  const auto shared = std::make_shared<nn::LinearImpl>(3, 1);
  ls::DataParallel wrapped(shared, {.devices = "cpu*2"});
  ls::SGD sgd(*net, {.lr = 0.1, .momentum = 0.9});
  torch::optim::Adam adam(net->parameters(), 0.01);
  ls::StepLR scheduler(sgd, {.step_size = 30});
  const auto owned = std::make_unique<ls::Adam>(*shared, ls::AdamOptions());
  ls::DataParallelOptimizer behind(
      std::make_shared<ls::SGD>(*net, ls::SGDOptions{.lr = 0.5}));
  step(net, sgd);
  step(net, adam);
  const std::size_t count = 5;
  const std::map<std::string, torch::Tensor> named = {
      {"a", torch::ones({2})},
      {"b", torch::zeros({1})}};
  ls::save(
      {{"epoch", 3},
       {"count", count},
       {"best_mIoU", 0.5F},
       {"is_best", true},
       {"arch", "linear"},
       {"none", std::optional<int>()},
       {"history", std::vector{0.25, 0.5}},
       {"classes", std::map<std::string, int>{{"cat", 0}, {"dog", 1}}},
       {"args", {{"lr", 0.1}, {"sizes", std::vector{1, 2}}, {"empty", {}}}},
       {"metrics", Metrics{.iou = 0.75, .name = "val"}},
       {"holder", net},
       {"pointer", shared},
       {"reference", *net},
       {"wrapper", wrapped},
       {"inside", wrapped->module()},
       {"sgd", sgd},
       {"adam", adam},
       {"owned", owned},
       {"behind", behind},
       {"scheduler", scheduler},
       {"tensor", torch::arange(3)},
       {"tensors", std::vector<torch::Tensor>{torch::ones({1}), named.at("a")}},
       {"named", named},
       {"ids", {{0, "cat"}, {1, "dog"}}},
       {"no_metrics", std::optional<Metrics>()}},
      path());
  EXPECT_EQ(
      lockstep::test::run_python("user_checkpoint.py", {path()}),
      "epoch int 3\n"
      "count int 5\n"
      "best_mIoU float 0.5\n"
      "is_best bool True\n"
      "arch str linear\n"
      "none NoneType None\n"
      "history list [0.25, 0.5]\n"
      "classes dict {'cat': 0, 'dog': 1}\n"
      "args dict {'lr': 0.1, 'sizes': [1, 2], 'empty': {}}\n"
      "metrics dict {'iou': 0.75, 'name': 'val'}\n"
      "holder OrderedDict weight bias\n"
      "pointer OrderedDict weight bias\n"
      "reference OrderedDict weight bias\n"
      "wrapper OrderedDict module.weight module.bias\n"
      "inside OrderedDict weight bias\n"
      "sgd dict loads\n"
      "adam dict loads\n"
      "owned dict loads\n"
      "behind dict loads\n"
      "scheduler dict loads\n"
      "tensor Tensor [0, 1, 2]\n"
      "tensors list [[1.0], [1.0, 1.0]]\n"
      "named dict {'a': [1.0, 1.0], 'b': [0.0]}\n"
      "ids dict {0: 'cat', 1: 'dog'}\n"
      "no_metrics NoneType None\n"
      "one memory True True\n");
}

TEST_F(CheckpointValues, GoBackIntoTheirParts) {
  nn::Linear net(4, 2);
  ls::SGD sgd(*net, {.lr = 0.1, .momentum = 0.9});
  torch::optim::Adam adam(net->parameters(), 0.01);
  ls::StepLR scheduler(sgd, {.step_size = 2});
  step(net, sgd);
  step(net, adam);
  scheduler.step();
  scheduler.step();
  ls::save(
      {{"epoch", 7},
       {"best", torch::tensor(0.5)},
       {"state_dict", net},
       {"optimizer", sgd},
       {"adam", adam},
       {"scheduler", scheduler},
       {"metrics", Metrics{.iou = 0.75, .name = "val"}}},
      path());

  nn::Linear again(4, 2);
  ls::DataParallel model(again.ptr(), {.devices = "cpu*2"});
  ls::SGD other(*again, {.lr = 1});
  torch::optim::Adam another(again->parameters(), 1);
  ls::StepLR schedule(other, {.step_size = 30});
  const auto file = ls::load(path());
  EXPECT_EQ(file["epoch"].to<int>(), 7);
  EXPECT_EQ(file["best"].to<double>(), 0.5);
  EXPECT_EQ(file["metrics"].to<Metrics>().name, "val");
  ls::load_weights(*model, file);
  ls::load_state(other, file["optimizer"]);
  ls::load_state(another, file["adam"]);
  ls::load_state(schedule, file["scheduler"]);
  EXPECT_TRUE(torch::equal(again->weight, net->weight));
  EXPECT_EQ(schedule.get_last_lr(), scheduler.get_last_lr());
  step(net, sgd);
  step(again, other);
  EXPECT_TRUE(torch::equal(again->weight, net->weight));
  step(net, adam);
  step(again, another);
  EXPECT_TRUE(torch::equal(again->weight, net->weight));
  EXPECT_TRUE(torch::equal(
      file["state_dict"]["weight"].to<torch::Tensor>(),
      file["state_dict"].to<std::map<std::string, torch::Tensor>>()["weight"]));
}

// Braces of one element would be that element: a list is a vector.
template <class T>
concept TakesAListInBraces = requires(T element) {
  ls::CheckpointEntry::Item{"key", {element}};
};
static_assert(!TakesAListInBraces<int>);
static_assert(!TakesAListInBraces<const char*>);
static_assert(!TakesAListInBraces<torch::Tensor>);

TEST_F(CheckpointValues, WithoutAPartAreAnError) {
  const std::shared_ptr<nn::LinearImpl> none;
  try {
    ls::save({{"nets", {{"state_dict", none}}}}, path());
    ADD_FAILURE() << "a null pointer was saved";
  } catch (const ls::Exception& e) {
    EXPECT_THAT(e.error().message, HasSubstr("'nets.state_dict': "));
  }
  try {
    ls::save({{"a", 1}, {"b", 2}, {"a", 3}}, path());
    ADD_FAILURE() << "one of two entries was lost";
  } catch (const ls::Exception& e) {
    EXPECT_THAT(e.error().message, HasSubstr("two entries are called 'a'"));
  }
  try {
    ls::save(
        {{"extra", {{"adjacency", torch::ones({2, 2}).to_sparse()}}}},
        path());
    ADD_FAILURE() << "a sparse tensor was saved";
  } catch (const ls::Exception& e) {
    EXPECT_THAT(e.error().message, HasSubstr("'extra.adjacency': "));
  }
}

TEST_F(CheckpointValues, OfAnotherTypeAreAnErrorWithTheFile) {
  ls::save({{"best_mIoU", "high"}, {"epoch", 3}}, path());
  const auto file = ls::load(path());
  try {
    (void)file["best_mIoU"].to<double>();
    ADD_FAILURE() << "a text was read as a number";
  } catch (const ls::Exception& e) {
    EXPECT_EQ(
        std::string(e.what()),
        "[ckpt.value] 'best_mIoU': expected a float, got str 'high' (" +
            path() + "). Hint: read it as std::string.");
  }
}

} // namespace
} // namespace program
