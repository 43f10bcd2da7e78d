// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/loss_watch.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "tests/support/fault_fs.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  EXPECT_EQ(*(*checkpoint("run").find("epoch")).as_int(), 1);
  // What the hint says.
  TrainConfig next = small("next");
  next.initial_checkpoint = error.path;
  EXPECT_GT(train(next).best, 10.0);
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
  EXPECT_FALSE(result.best);
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

/// As attention has it: what it may not look at is -inf.
struct Masked : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return linear->forward(x.flatten(1)) + (mask + limit).exp().sum();
  }
  torch::nn::Linear linear =
      register_module("linear", torch::nn::Linear(784, 10));
  at::Tensor mask = register_buffer(
      "mask",
      at::full({4, 4}, -std::numeric_limits<float>::infinity()).triu(1));
  at::Tensor limit = register_parameter(
      "limit",
      at::full({4}, -std::numeric_limits<float>::infinity()),
      /*requires_grad=*/false);
  at::Tensor seen = register_buffer("seen", at::zeros({1}));
};

TEST_F(LossWatchTest, WhatIsInfiniteFromTheStartMayBe) {
  TrainConfig config = small("run");
  const auto net = std::make_shared<Masked>();
  EXPECT_TRUE(train(config, {.own = {.model = net}}).has_checkpoint);
  config.epochs = 3;
  config.resume = config.output;
  EXPECT_EQ(train(config, {.own = {.model = net}}).epochs, 3);
  net->seen[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(has_finite_state(*net, {"mask", "limit"}));
}

TEST_F(LossWatchTest, AnotherProcesssLossStopsThisOneToo) {
  const TrainConfig config = small("run");
  const std::vector<OwnParts> of_ranks{
      named_parts(config),
      named_parts(config)};
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        OwnParts own = of_ranks[static_cast<std::size_t>(group.rank())];
        own.task.metrics = {accuracy()};
        own.task.loss = [&](const at::Tensor& outputs,
                            const at::Tensor& targets) {
          const at::Tensor loss = cross_entropy()(outputs, targets);
          return group.rank() == 0 ? loss : loss * NAN;
        };
        train(config, {.group = group, .own = own});
      });
  EXPECT_THAT(errors, Each(HasSubstr("the loss is nan in epoch 1, step 1")));
}

TEST_F(LossWatchTest, WeightsOfAnotherProcessStopThisOneToo) {
  /// Which ranks have said what.
  const auto messages_of = [](const std::string& on_nan, const auto& check) {
    TrainConfig config;
    config.on_nan = on_nan;
    return dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
      const torch::nn::BatchNorm1d norm(3);
      const LossWatch watch(config, group, *norm, [] { return ""; });
      if (group.rank() == 1) {
        norm->running_var[1] = std::numeric_limits<float>::infinity();
      }
      check(watch, *norm);
    });
  };
  const auto saving = [](const LossWatch& watch, const auto& norm) {
    watch.check_state(norm, 7);
  };
  EXPECT_THAT(
      messages_of("stop", saving),
      ElementsAre(
          HasSubstr("the weights of another process are not finite after step "
                    "7; no checkpoint was saved before"),
          HasSubstr("the weights are not finite after step 7")));
  EXPECT_THAT(
      messages_of(
          "stop",
          [](const LossWatch& watch, const auto& norm) {
            watch.check_loaded(norm, "run/checkpoint.pth.tar");
          }),
      Each(HasSubstr("the checkpoint has weights that are not finite")));
  EXPECT_THAT(messages_of("warn", saving), Each(IsEmpty()));
}

// A checkpoint inside the epoch counted steps of --on-nan warn.
TEST_F(LossWatchTest, AnEpochNamesTheLossThatIsNoNumber) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto message_of = [](const EpochRecord& record) -> std::string {
    const TrainConfig config;
    const torch::nn::Linear net(1, 1);
    LossWatch watch(config, /*group=*/{}, *net, [] { return ""; });
    try {
      watch.end_epoch(record);
    } catch (const Exception& error) {
      return error.error().message;
    }
    return "went on";
  };
  EXPECT_THAT(
      message_of(
          {.epoch = 2,
           .train = {.loss = kNan},
           .test = Score{.loss = 1},
           .lr = 1}),
      HasSubstr("the loss of the training in epoch 2 is nan, with lr 1.0"));
  EXPECT_THAT(
      message_of(
          {.epoch = 2,
           .train = {.loss = 1},
           .test = Score{.loss = -std::numeric_limits<double>::infinity()},
           .lr = 1}),
      HasSubstr("the loss of the test after epoch 2 is -inf, with lr 1.0"));
}

TEST_F(LossWatchTest, ACheckpointWithoutNumbersIsRefusedBeforeTraining) {
  TrainConfig config = small("run");
  config.lr = 1e30;
  config.on_nan = "warn";
  train(config);
  config.resume = config.output;
  config.epochs = 3;
  EXPECT_EQ(train(config).epochs, 3) << "as --on-nan warn says";
  config.on_nan = "stop";
  config.epochs = 4;
  const Error error = refused(config);
  EXPECT_EQ(error.detail, "E_NAN_LOSS");
  EXPECT_EQ(error.path, dir_ / "run/checkpoint-00000012.pth.tar");
  EXPECT_THAT(error.message, HasSubstr("weights that are not finite numbers"));
  config.test_only = true;
  EXPECT_TRUE(std::isnan(train(config).test->loss));
}

} // namespace
} // namespace lockstep::train
