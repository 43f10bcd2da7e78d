// SPDX-License-Identifier: BSD-3-Clause
//
// The trainer on a GPU: it learns, and a run that stops and goes on leaves what
// one without interruption leaves, byte for byte.
#include <cmath>

#include <ATen/Context.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/trainer.h"
#include "tests/cuda/support.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::train {
namespace {

namespace nn = torch::nn;
using ::testing::Lt;

/// Images whose brightness tells their class.
class Stripes : public Dataset {
 public:
  explicit Stripes(std::int64_t size) : size_(size) {}

  [[nodiscard]] std::int64_t size() const override {
    return size_;
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return {1, 8, 8};
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return 4;
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t /*epoch*/,
      std::span<float> images,
      TargetRows targets) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      targets.classes[i] = indices[i] % 4;
      for (std::size_t pixel = 0; pixel < 64; ++pixel) {
        const auto column = static_cast<std::int64_t>(pixel % 8);
        const auto wave = static_cast<double>(indices[i]) * 0.7 +
                          static_cast<double>(pixel) * 1.3;
        images[64 * i + pixel] = static_cast<float>(
            (column / 2 == targets.classes[i] ? 1.0 : 0.0) +
            0.3 * std::sin(wave));
      }
    }
  }

 private:
  std::int64_t size_ = 0;
};

/// Convolution, statistics and dropout; LibTorch's layers.
struct StripeNet : nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = norm->forward(conv->forward(x)).relu().flatten(1);
    return last->forward(torch::dropout(hidden, 0.2, is_training()));
  }
  nn::Conv2d conv = register_module("conv", nn::Conv2d(1, 8, 3));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(8));
  nn::Linear last = register_module("last", nn::Linear(288, 4));
};

class Trainer_CUDA : public test::CudaTest,
                     public ::testing::WithParamInterface<const char*> {
 protected:
  TrainConfig small(const std::string& folder) {
    TrainConfig config;
    config.devices = "cuda:0";
    config.amp = GetParam();
    config.epochs = 2;
    config.batch_size = 64;
    config.lr = 0.05;
    config.log_interval = 1;
    config.output = dir_ / folder;
    return config;
  }

  TrainResult train(const TrainConfig& config, TrainerOptions options = {}) {
    torch::manual_seed(5);
    options.own = {
        .model = std::make_shared<StripeNet>(),
        .train_data = std::make_shared<Stripes>(230),
        .test_data = std::make_shared<Stripes>(100)};
    return Trainer(config, options).run();
  }

  std::string get(const std::string& folder, const std::string& name) {
    return read_text(real_fs(), dir_ / (folder + "/" + name)).value();
  }

  void expect_equal(const std::string& a, const std::string& b) {
    for (const std::string name :
         {"checkpoint.pth.tar", "model_best.pth.tar", "steps.csv"}) {
      EXPECT_TRUE(get(a, name) == get(b, name)) << name << " of " << b;
    }
  }

  const test::ScratchDir dir_;
};

TEST_P(Trainer_CUDA, AStopAfterAnyStepChangesNothing) {
  train(small("straight"));
  train(small("again"));
  expect_equal("straight", "again");
  for (const int stop : {1, 3, 6}) {
    TrainConfig config = small(format("stopped-{}", stop));
    config.resume = "auto";
    int steps = 0;
    const auto first =
        train(config, {.should_stop = [&] { return ++steps >= stop; }});
    EXPECT_TRUE(first.was_stopped);
    config.resume_exact = true;
    EXPECT_FALSE(train(config).was_stopped);
    expect_equal("straight", format("stopped-{}", stop));
  }
}

TEST_P(Trainer_CUDA, LearnsAndGoesOnOnTheCpu) {
  TrainConfig config = small("run");
  config.epochs = 8;
  config.opt = "adamw";
  config.lr = 0.01;
  const TrainResult there = train(config);
  EXPECT_THAT(there.test->loss, Lt(0.7));
  const ckpt::Value saved =
      ckpt::load(dir_ / "run/checkpoint.pth.tar").value().root;
  const ckpt::Value* weight = saved.find("state_dict")->find("conv.weight");
  EXPECT_EQ(weight->as_tensor()->storage->location, "cpu");
  ASSERT_NE(saved.find("rng")->find("cuda:0"), nullptr);

  config.devices = "cpu";
  config.amp = "off";
  config.resume = config.output;
  config.epochs = 9;
  const TrainResult here = train(config);
  EXPECT_EQ(here.epochs, 9);
  EXPECT_EQ(here.steps, 36);
  EXPECT_THAT(here.test->loss, Lt(0.7));

  config.devices = "cuda:0"; // and back
  config.resume = config.output;
  config.epochs = 10;
  EXPECT_EQ(train(config).steps, 40);
}

TEST_P(Trainer_CUDA, SeveralStrategiesGiveTheSameBits) {
  TrainConfig config = small("straight");
  train(config);
  config.output = dir_ / "wrapped";
  config.strategy = "data_parallel";
  train(config);
  EXPECT_EQ(get("straight", "steps.csv"), get("wrapped", "steps.csv"));
}

TEST_P(Trainer_CUDA, CudnnBenchmarkIsNamedInTheCheckpoint) {
  TrainConfig config = small("run");
  config.epochs = 1;
  config.cudnn_benchmark = true;
  train(config);
  EXPECT_TRUE(at::globalContext().benchmarkCuDNN());
  at::globalContext().setBenchmarkCuDNN(false); // of the process
  const ckpt::Value saved =
      ckpt::load(dir_ / "run/checkpoint.pth.tar").value().root;
  EXPECT_THAT(
      saved.find("lockstep")->find("numerics")->find("gpu")->text(),
      ::testing::HasSubstr(", by benchmark"));
}

INSTANTIATE_TEST_SUITE_P(
    Amp,
    Trainer_CUDA,
    ::testing::Values("off", "bf16"),
    [](const auto& test) { return std::string(test.param); });

} // namespace
} // namespace lockstep::train
