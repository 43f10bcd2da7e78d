// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that are recorded and replayed leave what the same steps leave without.
// On simulated devices a replay calls the function again.
#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <torch/cuda.h>

#include "lockstep/device/device_list.h"
#include "lockstep/train/strategy.h"
#include "tests/train/dropout_net.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

void seed(c10::Device device) {
  at::manual_seed(5);
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(5);
}

class StepGraphsTest : public TrainerFixture,
                       public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("cuda:0") && !torch::cuda::is_available()) {
      GTEST_SKIP() << "no CUDA device here";
    }
    if (GetParam() == std::string("sim:0")) {
      parse_devices("sim*3"); // as many as other tests of this program want
    }
    device_ = parse_devices(GetParam()).front();
  }

  /// Strategies of equal nets, with and without graphs.
  std::unique_ptr<Strategy> strategy(
      const std::shared_ptr<DropoutNet>& net,
      bool cuda_graphs) const {
    return make_strategy(
        net,
        {.devices = {device_}, .cuda_graphs = cuda_graphs});
  }
  std::shared_ptr<DropoutNet> net() const {
    at::manual_seed(1);
    auto made = std::make_shared<DropoutNet>();
    made->to(device_);
    return made;
  }
  static std::vector<Batch> batches(std::initializer_list<std::int64_t> sizes) {
    at::manual_seed(2);
    std::vector<Batch> made;
    for (const std::int64_t size : sizes) {
      made.push_back(
          {.images = at::randn({size, 1, 28, 28}),
           .targets = at::randint(10, {size}, at::kLong)});
    }
    return made;
  }

  /// What a loop may do between its steps.
  using Between = std::function<void(DropoutNet&, std::size_t)>;

  struct Outcome {
    std::vector<float> losses = {};
    std::vector<at::Tensor> state = {};
  };
  Outcome steps(
      bool cuda_graphs,
      const std::vector<Batch>& given,
      const Between& between = [](DropoutNet& net, std::size_t) {
        net.zero_grad();
      }) const {
    const auto trained = net();
    const auto how = strategy(trained, cuda_graphs);
    seed(device_);
    Outcome outcome;
    for (std::size_t i = 0; i < given.size(); ++i) {
      between(*trained, i);
      outcome.losses.push_back(how->step(given[i]).read().loss);
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : trained->parameters()) {
        if (parameter.grad().defined()) {
          parameter.sub_(parameter.grad(), 0.1);
        }
      }
      outcome.losses.push_back(how->test(given[i]).read().loss);
    }
    for (const at::Tensor& tensor : trained->parameters()) {
      outcome.state.push_back(tensor.detach());
    }
    for (const at::Tensor& tensor : trained->buffers()) {
      outcome.state.push_back(tensor);
    }
    return outcome;
  }
  static void expect_equal(const Outcome& a, const Outcome& b) {
    EXPECT_EQ(a.losses, b.losses);
    ASSERT_EQ(a.state.size(), b.state.size());
    for (std::size_t i = 0; i < a.state.size(); ++i) {
      EXPECT_TRUE(at::equal(a.state[i], b.state[i])) << "tensor " << i;
    }
  }

  c10::Device device_ = c10::Device(c10::kCPU);
};

INSTANTIATE_TEST_SUITE_P(
    Devices,
    StepGraphsTest,
    ::testing::Values("sim:0", "cuda:0"),
    [](const auto& test) {
      std::string name = test.param;
      std::erase(name, ':');
      return name;
    });

TEST_P(StepGraphsTest, ShapesThatComeAndGo) {
  const auto given = batches({8, 8, 8, 4, 8, 4, 4, 4, 8, 2, 8});
  expect_equal(steps(false, given), steps(true, given));
}

TEST_P(StepGraphsTest, GradientsThatAddUp) {
  const auto given = batches({8, 8, 8, 8, 8, 8, 8, 8, 8});
  const auto every_third = [](DropoutNet& net, std::size_t step) {
    if (step % 3 == 0) {
      net.zero_grad();
    }
  };
  expect_equal(
      steps(false, given, every_third),
      steps(true, given, every_third));
}

// The factor of the loss is a number in the recording.
TEST_P(StepGraphsTest, WeightsThatChange) {
  const std::vector<double> weights{1, 1, 1, 0.5, 0.5, 0.5, 2, 1, 0.5, 0.25};
  const auto gradients = [&](bool cuda_graphs) {
    const auto trained = net();
    const auto how = strategy(trained, cuda_graphs);
    seed(device_);
    std::vector<at::Tensor> found;
    for (const double weight : weights) {
      trained->zero_grad();
      how->step(batches({8}).front(), {.weight = weight});
      found.push_back(trained->last->weight.grad().cpu().clone());
    }
    return found;
  };
  const auto expected = gradients(false);
  const auto found = gradients(true);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(at::equal(found[i], expected[i])) << "step " << i;
  }
}

TEST_P(StepGraphsTest, GradientsOfZeros) {
  const auto given = batches({8, 8, 8, 8});
  const auto zeros = [](DropoutNet& net, std::size_t) {
    net.zero_grad(/*set_to_none=*/false);
  };
  expect_equal(steps(false, given, zeros), steps(true, given, zeros));
}

// Whatever gradients there were when the test was recorded.
TEST_P(StepGraphsTest, ATestLeavesNoGradients) {
  const auto given = batches({8, 8, 8, 8});
  const auto trained = net();
  const auto how = strategy(trained, /*cuda_graphs=*/true);
  how->step(given[0]);
  how->test(given[1]);
  how->test(given[2]);
  trained->zero_grad();
  how->test(given[3]);
  EXPECT_FALSE(trained->first->weight.grad().defined());
}

/// Turns its images round now and then, as the host chooses.
struct HostDropoutNet : DropoutNet {
  at::Tensor forward(const at::Tensor& x) {
    return DropoutNet::forward(at::rand({}).item<float>() < 0.5 ? -x : x);
  }
};

TEST_P(StepGraphsTest, RandomNumbersOfTheHostAreRefused) {
  const auto how = make_strategy(
      std::make_shared<HostDropoutNet>(),
      {.devices = {device_}, .cuda_graphs = true});
  try {
    how->step(batches({8})[0]);
    FAIL() << "a recording would repeat them";
  } catch (const Exception& error) {
    EXPECT_THAT(error.error().message, HasSubstr("on the host"));
  }
}

TEST_P(StepGraphsTest, AModuleThatChanges) {
  const auto given = batches({8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8});
  const auto change = [&](DropoutNet& net, std::size_t step) {
    net.zero_grad();
    if (step == 3) {
      net.first->weight.set_requires_grad(false);
    } else if (step == 6) {
      net.last->weight.set_data(net.last->weight.detach().clone());
      net.first->weight.set_requires_grad(true);
    } else if (step == 9) {
      net.norm->eval();
    }
  };
  expect_equal(steps(false, given, change), steps(true, given, change));
}

TEST_P(StepGraphsTest, ARunAndItsResumption) {
  const auto train_own =
      [&](const std::string& folder, bool graphs, TrainerOptions options = {}) {
        TrainConfig config = small(folder);
        config.devices = GetParam();
        config.batch_size = 72; // a last batch of 40
        config.cuda_graphs = graphs;
        config.resume = "auto";
        options.own.model = net();
        seed(device_);
        train(config, std::move(options));
      };
  train_own("without", false);
  train_own("with", true);
  for (const int stop : {1, 3, 4, 6}) {
    const std::string folder = "stopped-" + std::to_string(stop);
    int steps = 0;
    train_own(folder, true, {.should_stop = [&] { return ++steps >= stop; }});
    train_own(folder, true);
    EXPECT_EQ(get("without", "steps.csv"), get(folder, "steps.csv")) << stop;
    EXPECT_EQ(
        get("with", "checkpoint.pth.tar") == get(folder, "checkpoint.pth.tar"),
        true)
        << stop;
  }
  EXPECT_EQ(get("without", "steps.csv"), get("with", "steps.csv"));
}

TEST_P(StepGraphsTest, AFailureOfTheLossIsTheCallersAndPasses) {
  const auto trained = net();
  bool fails = false;
  const auto how = make_strategy(
      trained,
      {.devices = {device_},
       .task =
           {.loss =
                [&](const at::Tensor& outputs, const at::Tensor& targets) {
                  if (fails) {
                    throw std::runtime_error("not today");
                  }
                  return cross_entropy()(outputs, targets);
                }},
       .cuda_graphs = true});
  const auto given = batches({8, 8, 8, 8});
  how->step(given[0]);
  trained->zero_grad();
  fails = true;
  EXPECT_THROW(how->step(given[1]), Exception);
  fails = false;
  trained->zero_grad();
  const float second = how->step(given[2]).read().loss;
  trained->zero_grad();
  EXPECT_NE(how->step(given[3]).read().loss, second);
}

/// Looks at a number on the host.
struct LookingNet : DropoutNet {
  at::Tensor forward(const at::Tensor& x) {
    return DropoutNet::forward(x.mean().item<float>() > 9 ? -x : x);
  }
};

TEST_P(StepGraphsTest, WhatWaitsForTheDeviceCannotBeRecorded) {
  if (!device_.is_cuda()) {
    GTEST_SKIP() << "simulated devices have no queue";
  }
  const auto looking = std::make_shared<LookingNet>();
  const auto how =
      make_strategy(looking, {.devices = {device_}, .cuda_graphs = true});
  const auto given = batches({8, 8});
  how->step(given[0]);
  looking->zero_grad();
  try {
    how->step(given[1]);
    FAIL() << "item() waits";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.error().hint, HasSubstr("item()"));
  }
  // The device is as usable as before.
  const auto plain = strategy(net(), false);
  EXPECT_GT(plain->step(given[1]).read().loss, 0);
}

TEST(StepGraphs, WantOneDeviceThatHasThem) {
  const auto refused = [](const StrategyOptions& options) {
    try {
      make_strategy(std::make_shared<DropoutNet>(), options);
    } catch (const Exception& error) {
      return error.error().message;
    }
    return std::string();
  };
  const c10::Device cpu(c10::kCPU);
  EXPECT_THAT(
      refused({.devices = {cpu}, .cuda_graphs = true}),
      HasSubstr("cpu has no graphs"));
  EXPECT_THAT(
      refused({.devices = {cpu, cpu}, .cuda_graphs = true}),
      HasSubstr("of a single device"));
}

} // namespace
} // namespace lockstep::train
