// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/trainer.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/report/event_file.h"
#include "tests/support/fault_fs.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// The rows of results.csv without the columns that hold times.
std::vector<std::string> without_times(const std::string& csv) {
  std::vector<std::string> rows;
  for (const std::string& line : split(csv, '\n')) {
    auto cells = split(line, ',');
    cells.resize(std::min<std::size_t>(cells.size(), 9));
    rows.push_back(join(cells, ","));
  }
  return rows;
}

using TrainerTest = TrainerFixture;

TEST_F(TrainerTest, KeepsARunFolder) {
  const TrainResult result = train(small("run"));
  EXPECT_EQ(result.epochs, 2);
  EXPECT_TRUE(result.has_checkpoint);
  EXPECT_EQ(result.folder, dir_ / "run");
  EXPECT_THAT(
      real_fs().list(result.folder).value(),
      ElementsAre(
          ".lock",
          "args.yaml",
          "checkpoint-00000004.pth.tar",
          "checkpoint-00000008.pth.tar",
          "checkpoint.pth.tar",
          "env.json",
          StartsWith("events.out.tfevents."),
          "log.txt",
          "metrics.jsonl",
          "model_best.pth.tar",
          "report.html",
          "report.json",
          "results.csv",
          "results.svg",
          "steps.csv"));
  EXPECT_THAT(split(get("run", "results.csv"), '\n'), SizeIs(1 + 2 + 1));
  EXPECT_THAT(split(get("run", "steps.csv"), '\n'), SizeIs(1 + 8 + 1));
  EXPECT_THAT(
      get("run", "log.txt"),
      AllOf(HasSubstr("model mlp with"), HasSubstr("Epoch: [2]  [3/4]")));
}

TEST_F(TrainerTest, LearnsSomething) {
  TrainConfig config = small("run");
  config.epochs = 8;
  const TrainResult result = train(config);
  EXPECT_GT(result.best, 40.0) << "chance is 10 %";
  EXPECT_GE(result.best, result.test->metric("top1"));
}

TEST_F(TrainerTest, CheckpointHasTheKeysOfTheNotes) {
  const TrainResult result = train(small("run"));
  const ckpt::Value root = checkpoint("run");
  EXPECT_EQ(*root.find("epoch")->as_int(), 2);
  EXPECT_EQ(*root.find("arch")->as_string(), "mlp");
  EXPECT_EQ(*root.find("best_acc1")->as_float(), result.best);
  for (const char* key : {"state_dict", "optimizer", "scheduler", "args"}) {
    EXPECT_NE(root.find(key)->as_dict(), nullptr) << key;
  }
  EXPECT_NE(root.find("state_dict")->find("layers.1.weight"), nullptr);
}

TEST_F(TrainerTest, SameSettingsGiveTheSameFiles) {
  train(small("a"));
  train(small("b"));
  EXPECT_EQ(get("a", "steps.csv"), get("b", "steps.csv"));
  EXPECT_EQ(get("a", "checkpoint.pth.tar"), get("b", "checkpoint.pth.tar"));
  EXPECT_EQ(
      without_times(get("a", "results.csv")),
      without_times(get("b", "results.csv")));
}

TEST_F(TrainerTest, ResumedRunEqualsTheStraightOne) {
  for (const std::string scheduler : {"steplr", "onecyclelr"}) {
    TrainConfig straight = small("straight-" + scheduler);
    straight.lr_scheduler = scheduler;
    straight.augment = "crop-flip";
    train(straight);

    TrainConfig config = straight;
    config.output = dir_ / ("resumed-" + scheduler);
    int steps = 0;
    const TrainResult stopped =
        train(config, {.should_stop = [&] { return ++steps > 6; }});
    EXPECT_TRUE(stopped.was_stopped);
    EXPECT_EQ(stopped.steps, 6);
    config.resume = config.output;
    EXPECT_EQ(train(config).epochs, 2);

    for (const std::string name : {"checkpoint.pth.tar", "steps.csv"}) {
      EXPECT_EQ(
          get("resumed-" + scheduler, name),
          get("straight-" + scheduler, name))
          << name;
    }
    EXPECT_EQ(
        without_times(get("resumed-" + scheduler, "results.csv")),
        without_times(get("straight-" + scheduler, "results.csv")));
  }
}

TEST_F(TrainerTest, ResumeOfAFinishedRunChangesNothing) {
  TrainConfig config = small("run");
  train(config);
  const std::string before = get("run", "checkpoint.pth.tar");
  config.resume = "auto";
  EXPECT_EQ(train(config).epochs, 2);
  EXPECT_EQ(get("run", "checkpoint.pth.tar"), before);
  EXPECT_THAT(split(get("run", "results.csv"), '\n'), SizeIs(1 + 2 + 1));
}

TEST_F(TrainerTest, AutoResumeWithoutARunStartsOne) {
  TrainConfig config = small("run");
  config.resume = "auto";
  RecordingLog log;
  EXPECT_EQ(train(config, {.log = &log}).epochs, 2);
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(HasSubstr("nothing to resume")));
}

TEST_F(TrainerTest, ResumeIntoAnotherFolderLeavesTheFirst) {
  TrainConfig config = small("first");
  train(config);
  const std::string before = get("first", "checkpoint.pth.tar");
  config.resume = config.output;
  config.output = dir_ / "second";
  config.epochs = 3;
  EXPECT_EQ(train(config).epochs, 3);
  EXPECT_EQ(get("first", "checkpoint.pth.tar"), before);
  EXPECT_THAT(split(get("second", "results.csv"), '\n'), SizeIs(1 + 1 + 1));
}

TEST_F(TrainerTest, BestFileHoldsTheBestEpoch) {
  TrainConfig config = small("run");
  config.epochs = 6;
  config.lr = 0.2;
  auto seen = std::make_shared<RecordingObserver>();
  train(config, {.observers = {seen}});
  const auto best =
      std::ranges::max_element(seen->epochs, {}, [](const EpochRecord& e) {
        return e.test->metric("top1");
      });
  const ckpt::Value root = checkpoint("run", kBestFile);
  EXPECT_EQ(*root.find("epoch")->as_int(), best->epoch);
  EXPECT_EQ(*root.find("best_acc1")->as_float(), best->test->metric("top1"));
}

TEST_F(TrainerTest, WorkersDoNotChangeResults) {
  TrainConfig config = small("none");
  config.augment = "crop-flip";
  config.workers = 0;
  train(config);
  config.output = dir_ / "three";
  config.workers = 3;
  train(config);
  EXPECT_EQ(get("none", "steps.csv"), get("three", "steps.csv"));
}

TEST_F(TrainerTest, TwoReplicasOfAModelWithoutBatchNormLearnTheSame) {
  auto one = std::make_shared<RecordingObserver>();
  auto two = std::make_shared<RecordingObserver>();
  TrainConfig config = small("one");
  train(config, {.observers = {one}});
  config.output = dir_ / "two";
  config.devices = "cpu*2";
  train(config, {.observers = {two}});
  ASSERT_EQ(one->steps.size(), two->steps.size());
  for (std::size_t i = 0; i < one->steps.size(); ++i) {
    // Gradients are summed in another order: equal up to rounding.
    EXPECT_NEAR(one->steps[i].loss, two->steps[i].loss, 1e-4) << i;
  }
}

TEST_F(TrainerTest, AStopSavesTheStepItCameAfter) {
  const TrainResult result =
      train(small("run"), {.should_stop = [] { return true; }});
  EXPECT_TRUE(result.was_stopped);
  EXPECT_TRUE(result.has_checkpoint);
  EXPECT_EQ(result.epochs, 0);
  EXPECT_EQ(result.steps, 1);
  EXPECT_THAT(split(get("run", "steps.csv"), '\n'), SizeIs(1 + 1 + 1));
  EXPECT_EQ(*(*checkpoint("run").find("step")).as_int(), 1);
}

TEST_F(TrainerTest, TestOnlyGivesTheScoreOfTheCheckpoint) {
  TrainConfig config = small("run");
  const TrainResult trained = train(config);
  config.test_only = true;
  config.initial_checkpoint = dir_ / "run/checkpoint.pth.tar";
  const TrainResult tested = train(config);
  EXPECT_EQ(tested.test->metric("top1"), trained.test->metric("top1"));
  EXPECT_EQ(tested.test->loss, trained.test->loss);
  EXPECT_EQ(tested.folder, "") << "a test makes no run folder";
}

TEST_F(TrainerTest, FullDiskKeepsThePreviousCheckpoint) {
  TrainConfig config = small("run");
  config.epochs = 1;
  train(config);
  const std::string before = get("run", "checkpoint.pth.tar");

  // Every start has an event file of its own.
  const auto names = [&] {
    auto all = real_fs().list(dir_ / "run").value();
    std::erase_if(all, [](const std::string& name) {
      return name.starts_with(report::kEventFilePrefix);
    });
    return all;
  };
  const auto files = names();

  // Enough for rows and lines, not for the weights.
  FaultFs full(real_fs(), {.error_number = 28, .byte_budget = 200'000});
  RecordingLog log;
  config.resume = config.output;
  config.epochs = 3;
  try {
    train(config, {.fs = &full, .log = &log});
    FAIL() << "the last save had no space";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kIo);
    EXPECT_THAT(error.error().path, HasSubstr("checkpoint-00000012.pth.tar"));
  }
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("checkpoint not saved")).Times(2)); // and pages
  EXPECT_EQ(get("run", "checkpoint.pth.tar"), before);
  EXPECT_EQ(names(), files) << "left-overs";
}

} // namespace
} // namespace lockstep::train
