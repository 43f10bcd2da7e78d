// SPDX-License-Identifier: BSD-3-Clause
//
// A run that stops after any step and goes on leaves what one without
// interruption leaves, byte for byte.
#include <ATen/Context.h>
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/dropout_net.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

class ExactResumeTest : public TrainerFixture {
 protected:
  TrainResult train_own(
      const TrainConfig& config,
      TrainerOptions options = {}) {
    at::manual_seed(5);
    for (const c10::Device& device : parse_devices(config.devices)) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      generator.set_current_seed(5);
    }
    options.own.model = std::make_shared<DropoutNet>();
    return train(config, std::move(options));
  }

  /// What must be equal between two folders of equal runs.
  void expect_equal(const std::string& a, const std::string& b) {
    for (const std::string name :
         {"checkpoint.pth.tar", "model_best.pth.tar", "steps.csv"}) {
      EXPECT_EQ(get(a, name) == get(b, name), true) << name << " of " << b;
    }
  }
};

class EveryStep : public ExactResumeTest,
                  public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Devices,
    EveryStep,
    ::testing::Values("cpu", "cpu*2", "sim*3"),
    [](const auto& test) {
      std::string name = test.param;
      std::erase(name, '*');
      return name;
    });

TEST_P(EveryStep, AStopAfterAnyStepChangesNothing) {
  TrainConfig config = small("straight");
  config.devices = GetParam();
  config.threads = 2;
  config.augment = "crop-flip";
  config.batch_size = 96; // a last batch of 64
  config.lr_step_size = 1;
  train_own(config);
  for (int stop = 1; stop < 6; ++stop) {
    const std::string folder = format("stopped-{}", stop);
    config.output = dir_ / folder;
    config.resume = "auto";
    int steps = 0;
    const auto first =
        train_own(config, {.should_stop = [&] { return ++steps >= stop; }});
    EXPECT_TRUE(first.was_stopped);
    config.resume_exact = true;
    EXPECT_FALSE(train_own(config).was_stopped);
    config.resume_exact = false;
    expect_equal("straight", folder);
  }
}

TEST_F(ExactResumeTest, AnIntervalInsideTheEpochChangesNothing) {
  TrainConfig config = small("straight");
  config.checkpoint_interval = 3;
  config.keep = 3;
  config.lr_scheduler = "onecyclelr";
  train_own(config);
  EXPECT_EQ(
      list_checkpoints(real_fs(), dir_ / "straight").value(),
      (std::vector<std::string>{
          checkpoint_name(8),
          checkpoint_name(6),
          checkpoint_name(4)}));
  config.output = dir_ / "again";
  int steps = 0;
  train_own(config, {.should_stop = [&] { return ++steps > 5; }});
  config.resume = config.output;
  train_own(config);
  expect_equal("straight", "again");
}

TEST_F(ExactResumeTest, TheBatchSizeMayChangeInsideAnEpoch) {
  TrainConfig config = small("run");
  config.epochs = 1;
  train_own(config, {.should_stop = [] { return true; }});
  config.resume = config.output;
  config.batch_size = 32;
  auto seen = std::make_shared<RecordingObserver>();
  const TrainResult result = train_own(config, {.observers = {seen}});
  // 64 of 256 samples were read; 192 are left.
  ASSERT_EQ(seen->steps.size(), 6U);
  EXPECT_EQ(seen->steps.front().batch, 1);
  EXPECT_EQ(seen->steps.front().batches, 7);
  EXPECT_EQ(seen->epochs.at(0).samples, 256);
  EXPECT_EQ(result.steps, 7);
}

TEST_F(ExactResumeTest, AScheduleThatIsTooShortIsRefusedAtOnce) {
  TrainConfig config = small("run");
  config.lr_scheduler = "onecyclelr";
  train_own(config, {.should_stop = [] { return true; }});
  config.resume = config.output;
  config.epochs = 3;
  try {
    train_own(config);
    FAIL() << "the schedule has no room for a third epoch";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(error.error().message, HasSubstr("7 of 8 steps left"));
  }
}

TEST_F(ExactResumeTest, ExactRefusesAndNamesWhatDiffers) {
  TrainConfig config = small("run");
  train_own(config, {.should_stop = [] { return true; }});
  config.resume = config.output;
  config.threads = 2;
  RecordingLog log;
  config.resume_exact = true;
  try {
    train_own(config);
    FAIL() << "two threads are not one";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(error.error().message, HasSubstr("threads: '1', now '2'"));
  }
  config.resume_exact = false;
  train_own(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ::testing::ElementsAre(HasSubstr("threads: '1', now '2'")));
}

TEST_F(ExactResumeTest, OtherSamplesInsideAnEpochAreRefused) {
  TrainConfig config = small("run");
  train_own(config, {.should_stop = [] { return true; }});
  config.resume = config.output;
  config.seed = 1;
  try {
    train_own(config);
    FAIL() << "the rest of the epoch would hold other samples";
  } catch (const Exception& error) {
    EXPECT_THAT(error.error().message, HasSubstr("seed: '0', now '1'"));
    EXPECT_THAT(error.error().hint, HasSubstr("after an epoch"));
  }
}

TEST_F(ExactResumeTest, ADamagedCheckpointIsPassedOver) {
  TrainConfig config = small("straight");
  config.epochs = 3;
  train_own(config);
  config.output = dir_ / "run";
  config.epochs = 2;
  train_own(config);
  const std::string newest = dir_ / ("run/" + checkpoint_name(8));
  const std::string bytes = read_text(real_fs(), newest).value();
  real_fs().truncate(newest, bytes.size() / 2).value();

  config.resume = config.output;
  config.epochs = 3;
  RecordingLog log;
  train_own(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ::testing::ElementsAre(HasSubstr("cannot be used")));
  EXPECT_EQ(get("run", "steps.csv"), get("straight", "steps.csv"));
  EXPECT_EQ(
      (*checkpoint("run").find("best_acc1")).number(),
      (*checkpoint("straight").find("best_acc1")).number());
}

TEST_F(ExactResumeTest, AnOlderCheckpointOpensANewFolder) {
  TrainConfig config = small("run");
  train_own(config);
  const std::string newest = get("run", "checkpoint.pth.tar");
  config.output = "";
  config.resume = dir_ / ("run/" + checkpoint_name(4));
  const TrainResult result = train_own(config);
  EXPECT_EQ(result.folder, dir_ / "run-2");
  EXPECT_EQ(get("run", "checkpoint.pth.tar"), newest);
  EXPECT_EQ(get("run-2", "checkpoint.pth.tar").size(), newest.size());
}

TEST_F(ExactResumeTest, PartsOfTheProgramTravelAlong) {
  TrainConfig config = small("run");
  std::int64_t seen = 0;
  const auto options = [&](int stop) {
    return TrainerOptions{
        .should_stop = [&seen, stop] { return ++seen == stop; },
        .parts = {
            {.key = "seen",
             .save = [&seen](ValueBuilder&) { return ckpt::Value(seen); },
             .load =
                 [&seen](const ckpt::Value& saved) {
                   seen = *saved.as_int() * 100;
                 }}}};
  };
  train_own(config, options(3));
  EXPECT_EQ(*(*checkpoint("run").find("seen")).as_int(), 3);
  config.resume = config.output;
  train_own(config, options(0));
  // Five more steps, and a question after each of the two epochs.
  EXPECT_EQ(seen, 300 + 5 + 2);
}

TEST_F(ExactResumeTest, OtherRanksAreTold) {
  TrainConfig config = small("run");
  const auto ranks_that_say = [&](std::size_t count) {
    const std::vector<OwnParts> of_ranks(count, named_parts(config));
    std::vector<OwnParts> own;
    for (OwnParts parts : of_ranks) {
      at::manual_seed(5);
      parts.model = std::make_shared<DropoutNet>();
      own.push_back(std::move(parts));
    }
    RecordingLog log;
    const auto errors = dist::run_thread_ranks(
        static_cast<int>(count),
        [&](const dist::ProcessGroup& group) {
          Trainer(
              config,
              {.group = group,
               .log = group.rank() == 0 ? &log : nullptr,
               .own = own[static_cast<std::size_t>(group.rank())]})
              .run();
        });
    return std::pair(errors, log.lines[LogLevel::kWarning]);
  };
  EXPECT_THAT(ranks_that_say(2).first, Each(""));
  config.epochs = 3;
  config.resume = config.output;
  config.resume_exact = true;
  EXPECT_THAT(ranks_that_say(4).first, Each(HasSubstr("ranks: '2', now '4'")));
  config.resume_exact = false;
  const auto [errors, warnings] = ranks_that_say(4);
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(warnings, Contains(HasSubstr("ranks: '2', now '4'")));
}

TEST_F(ExactResumeTest, OlderCheckpointsDoNotSayTheirRanks) {
  TrainConfig config = small("run");
  config.epochs = 1;
  train_own(config);
  ckpt::Value saved = checkpoint("run");
  ckpt::Value identity = *std::as_const(saved).find("lockstep");
  ckpt::Dict numerics;
  for (const ckpt::Item& item :
       std::as_const(identity).find("numerics")->as_dict()->items) {
    if (item.first.text() != "ranks") {
      numerics.items.push_back(item);
    }
  }
  identity.set("numerics", ckpt::Value(std::move(numerics)));
  saved.set("lockstep", identity);
  ckpt::save(dir_ / "older.pth.tar", saved).value();
  config.epochs = 2;
  config.output = dir_ / "next";
  config.resume = dir_ / "older.pth.tar";
  config.resume_exact = true;
  EXPECT_EQ(train_own(config).epochs, 2);
}

} // namespace
} // namespace lockstep::train
