// SPDX-License-Identifier: BSD-3-Clause
//
// Python is the oracle: tests/oracle/train_*.py.
#include <cstdlib>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "tests/support/python.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

constexpr const char* kData = "/usr/share/datasets/fashion-mnist";

class OracleTest : public TrainerFixture {
 protected:
  // Losses of every step, as Python prints them.
  std::vector<float> python_losses(const TrainConfig& config) {
    const std::string printed = test::run_python(
        "train_losses.py",
        {config.model,
         std::to_string(config.seed),
         std::to_string(config.threads),
         std::to_string(config.max_train_samples),
         std::to_string(config.batch_size),
         std::to_string(config.epochs),
         kData,
         config.amp,
         config.precision});
    std::vector<float> losses;
    for (const std::string& line : split(printed, '\n')) {
      if (!line.empty()) {
        losses.push_back(std::strtof(line.c_str(), nullptr));
      }
    }
    return losses;
  }

  std::vector<float> our_losses(const TrainConfig& config) {
    auto seen = std::make_shared<RecordingObserver>();
    train(config, {.observers = {seen}});
    return seen->losses();
  }

  // The acceptance's run: SGD, momentum 0.9, weight decay 5e-4, shuffled.
  TrainConfig as_in_python(const std::string& model) {
    TrainConfig config = small("run");
    config.model = model;
    config.lr = 0.1;
    config.weight_decay = 5e-4;
    config.lr_scheduler = "constant";
    config.data_dir = kData;
    config.max_eval_samples = 64;
    return config;
  }
};

TEST_F(OracleTest, TwentyLossesOfResNet18EqualPythonsToTheLastBit) {
  TrainConfig config = as_in_python("resnet18");
  config.max_train_samples = 1280;
  config.epochs = 1;
  const auto expected = python_losses(config);
  ASSERT_EQ(expected.size(), 20U);
  EXPECT_EQ(our_losses(config), expected);
}

TEST_F(OracleTest, LossesWithBfloat16EqualPythonsToTheLastBit) {
  for (const char* model : {"mlp", "resnet18"}) {
    TrainConfig config = as_in_python(model);
    // Without AVX-512, LibTorch takes seconds for an image in bfloat16.
    config.batch_size = widest_vectors() == VectorWidth::kAvx512 ? 64 : 4;
    config.max_train_samples = 5 * config.batch_size;
    config.max_eval_samples = config.batch_size;
    config.epochs = 1;
    config.amp = "bf16";
    config.output += std::string("-") + model;
    const auto expected = python_losses(config);
    ASSERT_EQ(expected.size(), 5U);
    const auto ours = our_losses(config);
    EXPECT_EQ(ours, expected) << model;
    config.amp = "off";
    config.output += "-off";
    EXPECT_NE(our_losses(config), ours) << model;
  }
}

TEST_F(OracleTest, LossesWithLessPreciseProductsEqualPythonsToTheLastBit) {
  TrainConfig config = as_in_python("mlp");
  config.max_train_samples = 320;
  config.epochs = 1;
  config.precision = "medium";
  const auto expected = python_losses(config);
  ASSERT_EQ(expected.size(), 5U);
  EXPECT_EQ(our_losses(config), expected);
  // Only some processors have faster products than those of highest precision.
  at::Context& context = at::globalContext();
  EXPECT_EQ(
      context.float32MatmulPrecision(),
      at::Float32MatmulPrecision::MEDIUM);
  context.setFloat32MatmulPrecision("highest");
}

TEST_F(OracleTest, LossesOfSeveralEpochsEqualPythonsForOtherSeeds) {
  for (const std::int64_t seed : {0, 7}) {
    TrainConfig config = as_in_python("mlp");
    config.max_train_samples = 200;
    config.epochs = 3;
    config.seed = seed;
    const auto expected = python_losses(config);
    ASSERT_EQ(expected.size(), 12U);
    EXPECT_EQ(our_losses(config), expected) << "seed " << seed;
  }
}

TEST_F(OracleTest, PythonLoadsTheWholeStateOfARun) {
  const TrainResult result = train(small("run"));
  EXPECT_EQ(
      test::run_python(
          "train_checkpoint.py",
          {dir_ / "run/checkpoint.pth.tar"}),
      format("2 mlp {} 0.05 2\n", shortest(*result.best)));
}

} // namespace
} // namespace lockstep::train
