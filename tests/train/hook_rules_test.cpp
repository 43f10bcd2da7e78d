// SPDX-License-Identifier: BSD-3-Clause
//
// What hooks promise beside their numbers: what is saved, compared, tested,
// undone and refused.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/hooks/frozen.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

class HookRules : public TrainerFixture {
 protected:
  Error refused(const TrainConfig& config, TrainerOptions options = {}) {
    try {
      train(config, std::move(options));
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
};

TEST_F(HookRules, ANameOfNothingIsRefusedWithTheNearest) {
  TrainConfig wanted = uneven("run");
  wanted.freeze = "layer.1";
  const Error error = refused(wanted);
  EXPECT_EQ(error.detail, "E_FREEZE");
  EXPECT_THAT(error.message, HasSubstr("'layer.1'"));
  EXPECT_THAT(error.hint, HasSubstr("layers.1"));
  wanted.freeze = "layers";
  EXPECT_THAT(refused(wanted).message, HasSubstr("nothing to train"));
}

// As an exported program has them: no class of LibTorch's, but its name.
struct NamedNorm : torch::nn::Module {
  NamedNorm() : torch::nn::Module("BatchNorm1d") {
    register_parameter("weight", torch::ones({4}));
  }
};
struct NetWithNorms : torch::nn::Module {
  NetWithNorms() {
    register_module("named", std::make_shared<NamedNorm>());
    register_module(
        "plain",
        torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(4).affine(false)));
    register_module("other", torch::nn::BatchNorm1d(4));
  }
};

TEST_F(HookRules, EveryFrozenNormIsInEvaluationMode) {
  const auto net = std::make_shared<NetWithNorms>();
  const auto hook = freeze(*net, {.names = "named"});
  const auto modes = [&] {
    std::vector<bool> found;
    for (const auto& child : net->children()) {
      found.push_back(child->is_training());
    }
    return found;
  };
  EXPECT_THAT(modes(), ::testing::ElementsAre(false, true, true));
  EXPECT_THAT(hook->text(), HasSubstr("1 batch norm"));
}

TEST_F(HookRules, TestsAreOfTheAverage) {
  TrainConfig wanted = uneven("run");
  wanted.ema = 0.9;
  wanted.epochs = 2;
  RecordingLog log;
  const TrainResult result = train(wanted, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(HasSubstr("tests are of the average of the weights")));
  OwnParts own = named_parts(wanted);
  const ckpt::Value saved = checkpoint("run");
  load_state_dict(own.model.module(), *saved.find("state_dict_ema"));
  TrainConfig test = uneven("");
  test.output = "";
  test.test_only = true;
  const TrainResult of_average = Trainer(test, {.group = {}, .own = own}).run();
  EXPECT_EQ(of_average.test->loss, result.test->loss);
}

TEST_F(HookRules, TestsAreOfTheMeanOfEpochs) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 3;
  wanted.swa_start = 2;
  const TrainResult result = train(wanted);
  const ckpt::Value saved = checkpoint("run");
  EXPECT_EQ(saved.find("swa_updates")->number(), 2.0);
  OwnParts own = named_parts(wanted);
  load_state_dict(own.model.module(), *saved.find("state_dict_swa"));
  TrainConfig test = uneven("");
  test.output = "";
  test.test_only = true;
  const TrainResult of_mean = Trainer(test, {.group = {}, .own = own}).run();
  EXPECT_EQ(of_mean.test->loss, result.test->loss);
  wanted.ema = 0.9;
  EXPECT_THAT(refused(wanted).message, HasSubstr("two averages"));
}

TEST_F(HookRules, AnAverageBeginsWithTheFirstUpdate) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  train(wanted);
  TrainConfig next = uneven("next");
  next.resume = wanted.output + "/model_best.pth.tar";
  next.ema = 0.9;
  next.epochs = 1; // nothing to train
  train(next);
  const auto tensors = [&](const char* key) {
    return to_state_dict(*checkpoint("run").find(key));
  };
  RecordingLog log;
  TrainConfig test = next;
  test.test_only = true;
  const TrainResult of_next = train(test, {.log = &log});
  test.ema = 0;
  EXPECT_EQ(of_next.test->loss, train(test).test->loss)
      << "no average yet: the weights are tested";
  const StateDict weights = tensors("state_dict");
  EXPECT_EQ(checkpoint("run").find("state_dict_ema"), nullptr);
  next.epochs = 2;
  train(next);
  const ckpt::Value saved = checkpoint("next");
  ASSERT_NE(saved.find("state_dict_ema"), nullptr);
  const StateDict average = to_state_dict(*saved.find("state_dict_ema"));
  for (const auto& [name, tensor] : weights.entries) {
    EXPECT_LT((average.get(name) - tensor).abs().max().item<float>(), 0.2F)
        << name << ": not that of a new net";
  }
}

// Doubles the weights for the test.
struct Doubling : StepHook {
  [[nodiscard]] std::string text() const override {
    return "doubled";
  }
  void begin_test(const StepScope& scope) override {
    scale(scope, 2);
  }
  void end_test(const StepScope& scope) override {
    scale(scope, 0.5);
  }
  static void scale(const StepScope& scope, double factor) {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : scope.module.parameters()) {
      parameter *= factor;
    }
  }
};

TEST_F(HookRules, TestsOfSeveralHooksAreUndoneInTheOppositeOrder) {
  TrainConfig wanted = uneven("plain");
  wanted.ema = 0.9;
  wanted.epochs = 2;
  train(wanted);
  wanted.output = dir_ / "doubled";
  train(wanted, {.hooks = {std::make_shared<Doubling>()}});
  const auto weights = [&](const std::string& folder) {
    return to_state_dict(*checkpoint(folder).find("state_dict"));
  };
  const StateDict doubled = weights("doubled");
  for (const auto& [name, tensor] : weights("plain").entries) {
    EXPECT_TRUE(tensor.equal(doubled.get(name))) << name;
  }
}

TEST_F(HookRules, OtherFrozenPartsOfTheSameSizeAreToldApart) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  wanted.freeze = "layers.1";
  train(wanted);
  wanted.epochs = 2;
  wanted.freeze = "layers.3";
  wanted.resume = wanted.output;
  wanted.resume_exact = true;
  EXPECT_THAT(refused(wanted).message, HasSubstr("layers.1 frozen"));
}

TEST_F(HookRules, APlateauWaitsForWhatIsBetter) {
  TrainConfig wanted = uneven("run");
  wanted.lr_scheduler = "reducelronplateau";
  wanted.epochs = 1;
  train(wanted);
  const ckpt::Value saved = checkpoint("run");
  EXPECT_EQ(saved.find("scheduler")->find("mode")->text(), "max");
  wanted.metric = "loss";
  wanted.epochs = 2;
  wanted.resume = wanted.output;
  const Error error = refused(wanted);
  EXPECT_EQ(error.detail, "E_OTHER_SETTING");
  EXPECT_THAT(error.message, HasSubstr("waits for a higher number"));
}

TEST_F(HookRules, AWarmUpGoesOnFromAFileWithoutASchedule) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 4;
  wanted.warmup_epochs = 3;
  wanted.lr_scheduler = "constant";
  int steps = 0;
  train(wanted, {.should_stop = [&] { return ++steps >= 5; }});
  ckpt::Value saved = checkpoint("run");
  ckpt::Dict without;
  for (const ckpt::Item& item : saved.as_dict()->items) {
    if (item.first.text() != "scheduler") {
      without.items.push_back(item);
    }
  }
  ckpt::save(dir_ / "file.pth.tar", ckpt::Value(std::move(without))).value();
  wanted.output = dir_ / "next";
  wanted.resume = dir_ / "file.pth.tar";
  auto seen = std::make_shared<RecordingObserver>();
  train(wanted, {.observers = {seen}});
  std::vector<double> rates;
  for (const EpochRecord& epoch : seen->epochs) {
    rates.push_back(epoch.lr);
  }
  EXPECT_THAT(rates, Each(::testing::Le(0.1 + 1e-9)));
  EXPECT_NEAR(rates.back(), 0.1, 1e-9);
}

TEST_F(HookRules, WithoutPatienceLeftTheRunEnds) {
  TrainConfig wanted = uneven("run");
  wanted.lr = 0.0; // no epoch is better than the first
  wanted.epochs = 9;
  wanted.patience = 2;
  RecordingLog log;
  const TrainResult result = train(wanted, {.log = &log});
  EXPECT_EQ(result.epochs, 3);
  EXPECT_FALSE(result.was_stopped);
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(
          HasSubstr("the run ends after epoch 3: no new best in 2 epochs")));
  wanted.resume = wanted.output;
  EXPECT_EQ(train(wanted).epochs, 3) << "it has ended";
  wanted.patience = 4;
  wanted.resume_exact = true; // no bit depends on it
  EXPECT_EQ(train(wanted).epochs, 5) << "and goes on with more of it";
}

struct Counter : StepHook {
  [[nodiscard]] std::string text() const override {
    return "updates are counted";
  }
  std::vector<StatePart> parts() override {
    return {number_part("updates", updates)};
  }
  void before_update(const StepScope& scope) override {
    EXPECT_TRUE(scope.module.parameters().front().grad().defined());
    steps.push_back(scope.step);
  }
  void after_update(const StepScope& /*scope*/) override {
    ++updates;
  }
  std::int64_t updates = 0;
  std::vector<std::int64_t> steps = {};
};

TEST_F(HookRules, AProgramsOwnIsCalledSavedAndCompared) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  const auto hook = std::make_shared<Counter>();
  train(wanted, {.hooks = {hook}});
  EXPECT_THAT(hook->steps, ::testing::ElementsAre(1, 2, 3, 4, 5));
  wanted.epochs = 2;
  wanted.resume = wanted.output;
  wanted.resume_exact = true;
  EXPECT_THAT(
      refused(wanted).message,
      HasSubstr("hooks: 'updates are counted', now ''"));
  const auto more = std::make_shared<Counter>();
  train(wanted, {.hooks = {more}});
  EXPECT_EQ(more->updates, 10);
}

TEST_F(HookRules, AWarmUpOfStepsIsOverInAFileWithoutOne) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  train(wanted);
  ckpt::Value saved = checkpoint("run");
  ckpt::Dict without;
  for (const ckpt::Item& item : saved.as_dict()->items) {
    if (item.first.text() != "args") {
      without.items.push_back(item);
    }
  }
  ckpt::save(dir_ / "file.pth.tar", ckpt::Value(std::move(without))).value();
  wanted.epochs = 3;
  wanted.warmup_steps = 8;
  wanted.resume = dir_ / "file.pth.tar";
  wanted.output = dir_ / "next";
  auto seen = std::make_shared<RecordingObserver>();
  RecordingLog log;
  train(wanted, {.log = &log, .observers = {seen}});
  for (const EpochRecord& epoch : seen->epochs) {
    EXPECT_EQ(epoch.lr, 0.1);
  }
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("no warmup in the file: it is over")));
}

TEST_F(HookRules, FlagsThatAScheduleDoesNotTakeAreSaid) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  wanted.min_lr = 0.01;
  wanted.lr_patience = 3;
  wanted.lr_step_size = 2;
  RecordingLog log;
  train(wanted, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ::testing::ElementsAre(
          HasSubstr("--lr-patience has no effect on --lr-scheduler steplr"),
          HasSubstr("--min-lr has no effect")));
}

TEST_F(HookRules, FlagsOfCudaHaveNoEffectOnTheCpu) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  wanted.cudnn_benchmark = true;
  RecordingLog log;
  train(wanted, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains("--cudnn-benchmark has no effect on cpu: cuDNN is for CUDA "
               "devices"));
  EXPECT_TRUE(at::globalContext().benchmarkCuDNN());
  at::globalContext().setBenchmarkCuDNN(false); // of the process
  EXPECT_THAT(get("run", "args.yaml"), HasSubstr("cudnn_benchmark: true"));
}

TEST_F(HookRules, CommasAloneNameNothing) {
  TrainConfig wanted = uneven("run");
  wanted.freeze = ",";
  const Error error = refused(wanted);
  EXPECT_EQ(error.detail, "E_FREEZE");
  EXPECT_THAT(error.message, HasSubstr("',' names no part"));
  wanted.freeze = "layers.1,";
  wanted.epochs = 1;
  EXPECT_EQ(train(wanted).epochs, 1);
}

TEST_F(HookRules, AnAverageThatIsNotTakenIsSaid) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  wanted.ema = 0.9;
  train(wanted);
  TrainConfig next = uneven("next");
  next.epochs = 1;
  next.initial_checkpoint = wanted.output + "/model_best.pth.tar";
  RecordingLog log;
  train(next, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(HasSubstr("has an average of the weights, too")));
}

TEST_F(HookRules, WhatDoesNotGoTogetherIsRefused) {
  TrainConfig wanted = uneven("run");
  wanted.warmup_epochs = 1;
  wanted.lr_scheduler = "onecyclelr";
  EXPECT_EQ(refused(wanted).detail, "E_FLAGS");
  wanted.lr_scheduler = "reducelronplateau";
  EXPECT_EQ(refused(wanted).detail, "E_FLAGS");
  wanted.lr_scheduler = "cosineannealinglr";
  wanted.warmup_epochs = wanted.epochs;
  EXPECT_THAT(refused(wanted).message, HasSubstr("leaves none"));
  wanted.warmup_epochs = 1;
  wanted.warmup_steps = 2;
  EXPECT_THAT(refused(wanted).message, HasSubstr("are two warm-ups"));
  wanted.warmup_epochs = 0;
  wanted.warmup_steps = 20;
  EXPECT_THAT(refused(wanted).message, HasSubstr("20 of 20 steps leaves none"));
  wanted.warmup_steps = 2;
  wanted.lr_scheduler = "onecyclelr";
  EXPECT_THAT(refused(wanted).hint, HasSubstr("warms up by itself"));
}

} // namespace
} // namespace lockstep::train
