// SPDX-License-Identifier: BSD-3-Clause
//
// `--profile`: what a trace viewer reads in trace.json.
#include "lockstep/train/loop/step_profile.h"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/support/trace_file.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using test::TraceFile;
using test::TraceFileEvent;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

class StepProfileTest : public TrainerFixture {
 protected:
  /// Two epochs of four steps: the fourth and the fifth are shown, with the
  /// test and the checkpoint between them.
  TrainConfig profiled(const std::string& folder) {
    TrainConfig config = small(folder);
    config.devices = "cpu*2";
    config.profile = 2;
    return config;
  }
  TraceFile trace(const std::string& folder) {
    return test::read_trace(get(folder, "trace.json"));
  }
};

// Of each step, in its time.
testing::AssertionResult has_phases(
    const TraceFile& trace,
    const TraceFileEvent& step) {
  for (const char* phase :
       {"data", "forward", "backward", "hooks", "optimizer", "read"}) {
    const auto events = trace.named(phase, "main");
    if (std::ranges::none_of(events, [&](const TraceFileEvent& event) {
          return step.holds(event);
        })) {
      return testing::AssertionFailure() << step.name << " lacks " << phase;
    }
  }
  return testing::AssertionSuccess();
}

TEST_F(StepProfileTest, StepsPhasesAndReplicasAreLanes) {
  RecordingLog log;
  train(profiled("run"), {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains("trace.json shows 2 steps: open it in ui.perfetto.dev"));
  const TraceFile found = trace("run");
  EXPECT_EQ(found.misplaced(), "");
  EXPECT_THAT(found.processes, ElementsAre("rank 0"));
  for (const char* step : {"ProfilerStep#4", "ProfilerStep#5"}) {
    const auto steps = found.named(step, "main");
    ASSERT_THAT(steps, SizeIs(1)) << step;
    EXPECT_TRUE(has_phases(found, steps.front()));
  }
  EXPECT_THAT(found.named("ProfilerStep#3", "main"), IsEmpty());
  EXPECT_THAT(found.named("ProfilerStep#6", "main"), IsEmpty());
  EXPECT_THAT(
      found.lanes(),
      IsSupersetOf(
          {"main", "replica 0", "replica 1", "loader", "checkpoint writer"}));
  const auto forwards = found.named("forward", "main");
  for (const char* replica : {"replica 0", "replica 1"}) {
    EXPECT_THAT(found.named("backward", replica), SizeIs(2)) << replica;
    // In a test, too.
    const auto passes = found.named("forward", replica);
    ASSERT_THAT(passes, SizeIs(testing::Gt(2))) << replica;
    EXPECT_TRUE(forwards.front().holds(passes.front())) << replica;
    EXPECT_THAT(found.named("aten::addmm", replica), Not(IsEmpty()));
  }
  EXPECT_THAT(found.named("sum of gradients", "main"), SizeIs(2));
  EXPECT_EQ(found.named("aten::addmm", "replica 1").front().category, "cpu_op");
}

TEST_F(StepProfileTest, TestAndCheckpointAreThereWhereTheyFallBetween) {
  train(profiled("run"));
  const TraceFile found = trace("run");
  EXPECT_THAT(found.named("test", "main"), SizeIs(1));
  const auto saved = found.named("checkpoint", "main");
  const auto copied = found.named("copy of the checkpoint", "main");
  const auto written = found.named("write the checkpoint", "checkpoint writer");
  ASSERT_THAT(saved, SizeIs(1));
  ASSERT_THAT(copied, SizeIs(1));
  ASSERT_THAT(written, SizeIs(1));
  EXPECT_TRUE(saved.front().holds(copied.front()));
  EXPECT_GE(written.front().start, copied.front().end);
}

TEST_F(StepProfileTest, ItChangesNoBit) {
  TrainConfig config = profiled("seen");
  train(config);
  config.output = dir_ / "unseen";
  config.profile = 0;
  train(config);
  for (const char* name : {"checkpoint.pth.tar", "steps.csv", "args.yaml"}) {
    EXPECT_EQ(get("seen", name), get("unseen", name)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "unseen/trace.json"));
}

TEST_F(StepProfileTest, ARunThatEndsBeforeHasWhatThereWas) {
  TrainConfig config = profiled("run");
  config.epochs = 1;
  config.profile = 10;
  RecordingLog log;
  train(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(HasSubstr("trace.json shows 1 step:")));
  EXPECT_THAT(trace("run").named("ProfilerStep#4", "main"), SizeIs(1));
}

TEST_F(StepProfileTest, ARunOfTooFewStepsSaysSo) {
  TrainConfig config = profiled("run");
  config.epochs = 1;
  config.max_train_samples = 192;
  RecordingLog log;
  train(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains("no trace.json: the run has no step after the first 3"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run/trace.json"));
}

TEST_F(StepProfileTest, AnotherTraceOfTheProcessIsInTheWay) {
  const auto other = TraceRecorder::begin();
  RecordingLog log;
  EXPECT_EQ(train(profiled("run"), {.log = &log}).steps, 8);
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains("no trace.json: another one is being recorded"));
}

TEST_F(StepProfileTest, AFolderInItsPlaceIsAWarning) {
  TrainConfig config = profiled("run");
  config.profile = 0;
  train(config);
  std::filesystem::create_directory(dir_ / "run/trace.json");
  config.resume = "auto";
  config.epochs = 4;
  config.profile = 1;
  RecordingLog log;
  EXPECT_EQ(train(config, {.log = &log}).epochs, 4);
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("no trace.json: ")));
}

} // namespace
} // namespace lockstep::train
