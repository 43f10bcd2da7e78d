// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loss_watch.h"

#include <limits>

#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>

#include "lockstep/base/fault_fs.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class LossWatchTest : public TrainerFixture {
 protected:
  Error refused(const TrainConfig& config) {
    try {
      train(config);
    } catch (const Exception& error) {
      return error.error();
    }
    ADD_FAILURE() << "the run was not stopped";
    return {};
  }
};

TEST_F(LossWatchTest, ARunWithoutNumbersStopsAndSavesNothing) {
  TrainConfig config = small("run");
  config.lr = 1e30;
  const Error error = refused(config);
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_EQ(error.detail, "E_NAN_LOSS");
  EXPECT_THAT(
      error.message,
      AllOf(
          HasSubstr("in epoch 1, step 2 of 4, with lr 1e+30"),
          HasSubstr("no checkpoint was saved before")));
  EXPECT_THAT(error.hint, HasSubstr("a lower --lr"));
  EXPECT_FALSE(real_fs().stat(dir_ / "run/model_best.pth.tar"));
  EXPECT_FALSE(real_fs().stat(dir_ / "run/checkpoint.pth.tar"));
}

TEST_F(LossWatchTest, TheLastGoodCheckpointStays) {
  TrainConfig config = small("run");
  config.lr_scheduler = "multisteplr";
  config.lr_milestones = {1};
  config.lr_gamma = 1e31;
  const Error error = refused(config);
  EXPECT_EQ(error.path, dir_ / "run/checkpoint.pth.tar");
  EXPECT_THAT(error.message, HasSubstr("in epoch 2, step 2 of 4"));
  EXPECT_THAT(error.hint, HasSubstr("--initial-checkpoint " + error.path));
  EXPECT_EQ(checkpoint("run").find("epoch")->as_int()[0], 1);
  // What the hint says.
  TrainConfig next = small("next");
  next.initial_checkpoint = error.path;
  EXPECT_GT(train(next).best_acc1, 10.0);
}

// One step of an epoch: the loss is a number, the weights after it are not.
TEST_F(LossWatchTest, WeightsWithoutNumbersAreNotSaved) {
  TrainConfig config = small("run");
  config.max_train_samples = 64;
  config.lr = 1e30;
  const Error error = refused(config);
  EXPECT_EQ(error.detail, "E_NAN_LOSS");
  EXPECT_THAT(error.message, HasSubstr("the test after epoch 1"));
  EXPECT_FALSE(real_fs().stat(dir_ / "run/checkpoint.pth.tar"));

  config = small("steps");
  config.lr = 1e30;
  config.weight_decay = 1e12;
  config.checkpoint_interval = 1;
  EXPECT_THAT(
      refused(config).message,
      HasSubstr("weights are not finite after step 1"));
}

TEST_F(LossWatchTest, AWarningPerEpochAndNoBest) {
  TrainConfig config = small("run");
  config.lr = 1e30;
  config.on_nan = "warn";
  RecordingLog log;
  const TrainResult result = train(config, {.log = &log});
  EXPECT_EQ(result.epochs, 2);
  EXPECT_EQ(result.best_acc1, 0.0);
  EXPECT_TRUE(result.has_checkpoint);
  EXPECT_FALSE(real_fs().stat(dir_ / "run/model_best.pth.tar"));
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ::testing::ElementsAre(
          "epoch 1: the loss was not a finite number in 3 steps and in the "
          "test; "
          "it cannot be the best epoch",
          "epoch 2: the loss was not a finite number in 4 steps and in the "
          "test; "
          "it cannot be the best epoch"));
}

TEST_F(LossWatchTest, SeesEveryNumberOfAModule) {
  torch::nn::BatchNorm1d norm(3);
  EXPECT_TRUE(has_finite_state(*norm));
  norm->running_var[1] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(has_finite_state(*norm));
  norm->running_var[1] = 1.0;
  norm->weight.data()[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(has_finite_state(*norm));
}

/// Two processes of which the other one says what it is told to.
class OtherRank : public World {
 public:
  [[nodiscard]] int rank() const override {
    return 0;
  }
  [[nodiscard]] int size() const override {
    return 2;
  }
  void sum(std::span<double> values) override {
    if (values.size() == 2) {
      values[1] += 1.0; // the votes of a step: its loss is not finite
    }
  }
  bool any(bool value) override {
    return value;
  }
  void broadcast(std::vector<std::byte>& /*bytes*/) override {}
  void barrier() override {}
};

TEST_F(LossWatchTest, AnotherProcesssLossStopsThisOneToo) {
  OtherRank world;
  try {
    train(small("run"), {.world = &world});
    ADD_FAILURE() << "went on";
  } catch (const Exception& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("the loss of another process is not finite in epoch 1"));
  }
}

} // namespace
} // namespace lockstep::train
