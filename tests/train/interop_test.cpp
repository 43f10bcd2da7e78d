// SPDX-License-Identifier: BSD-3-Clause
//
// Runs that go back and forth between `lockstep train` and Python scripts:
// examples/python/train.py, and the layouts of tests/oracle/train_layouts.py.
#include <array>
#include <cstdlib>
#include <initializer_list>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "tests/support/python.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Losses = std::vector<float>;

Losses joined(std::initializer_list<Losses> parts) {
  Losses all;
  for (const Losses& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class InteropTest : public TrainerFixture {
 protected:
  /// What both sides are told. The rate drops after each epoch.
  TrainConfig shared(const std::string& folder, std::int64_t epochs) {
    TrainConfig config = small(folder);
    config.lr_step_size = 1;
    config.lr_gamma = 0.5;
    config.epochs = epochs;
    return config;
  }

  /// The newest checkpoint of a run, Python's or Lockstep's.
  std::string file_of(const std::string& run) {
    return run.empty() ? run : dir_ / (run + "/checkpoint.pth.tar");
  }

  /// Trains with examples/python/train.py up to `epochs`, from the beginning or
  /// from `from`; the losses of its steps.
  Losses python(
      const std::string& folder,
      std::int64_t epochs,
      const std::string& from = "") {
    const TrainConfig config = shared(folder, epochs);
    std::vector<std::string> args;
    for (const char* key :
         {"epochs",
          "batch_size",
          "lr",
          "momentum",
          "weight_decay",
          "lr_step_size",
          "lr_gamma",
          "threads",
          "max_train_samples",
          "max_eval_samples",
          "output"}) {
      const Flag& flag = *find_key(key);
      args.push_back(format("--{}={}", flag.name, get_flag(config, flag)));
    }
    if (!from.empty()) {
      args.push_back("--resume=" + file_of(from));
    }
    Losses losses;
    for (const std::string& line :
         test::python_lines("../../examples/python/train.py", args)) {
      if (const auto at = line.find("Loss "); at != std::string::npos) {
        losses.push_back(std::strtof(line.c_str() + at + 5, nullptr));
      }
    }
    return losses;
  }

  /// The same with the trainer; `steps` stops it earlier.
  Losses lockstep(
      const std::string& folder,
      std::int64_t epochs,
      const std::string& from = "",
      std::int64_t steps = -1) {
    TrainConfig config = shared(folder, epochs);
    config.resume = file_of(from);
    auto seen = std::make_shared<RecordingObserver>();
    train(config, {.observers = {seen}, .should_stop = [&] {
                     return --steps == 0;
                   }});
    return seen->losses();
  }

  /// Weights, momentum, and everything else that Python reads.
  void expect_same_state(const std::string& a, const std::string& b) {
    const ckpt::Value first = checkpoint(a);
    const ckpt::Value second = checkpoint(b);
    for (const char* key : {"state_dict", "optimizer"}) {
      const auto report =
          ckpt::diff(*first.find(key), *second.find(key)).value();
      EXPECT_GT(report.compared, 5U) << key;
      EXPECT_TRUE(report.rows.empty()) << key << " of " << a << ", " << b;
    }
    for (const char* key : {"epoch", "arch", "best_acc1", "scheduler"}) {
      EXPECT_EQ(
          ckpt::to_text(*first.find(key)),
          ckpt::to_text(*second.find(key)));
    }
    EXPECT_EQ(
        ckpt::to_text(*first.find("optimizer")->find("param_groups")),
        ckpt::to_text(*second.find("optimizer")->find("param_groups")));
  }
};

TEST_F(InteropTest, PythonThenLockstepThenPythonIsPythonAlone) {
  const Losses alone = python("alone", 3);
  ASSERT_EQ(alone.size(), 12U);
  const Losses first = python("first", 1);
  const Losses second = lockstep("second", 2, "first");
  // Lockstep's epoch once more, with a stop inside of it.
  const Losses part = lockstep("parts", 3, "first", /*steps=*/1);
  EXPECT_EQ(joined({part, lockstep("parts", 2, "parts")}), second);
  EXPECT_EQ(joined({first, second, python("third", 3, "parts")}), alone);
  expect_same_state("second", "parts");
  expect_same_state("alone", "third");
}

TEST_F(InteropTest, LockstepThenPythonThenLockstepIsLockstepAlone) {
  const Losses alone = lockstep("alone", 3);
  ASSERT_EQ(alone.size(), 12U);
  const Losses first = lockstep("first", 1);
  const Losses second = python("second", 2, "first");
  EXPECT_EQ(joined({first, second, lockstep("third", 3, "second")}), alone);
  expect_same_state("alone", "third");
}

// The best accuracy where the file does not say it, and where it does.
constexpr double kNone = 0.0;
constexpr double kBest = 99.5;

struct LayoutCase {
  const char* function = "";
  const char* layout = "";
  double best = kBest;
};

std::ostream& operator<<(std::ostream& out, const LayoutCase& one) {
  return out << one.function;
}

/// What tests/oracle/train_layouts.py writes and prints.
struct PythonFiles {
  PythonFiles() {
    for (const std::string& line :
         test::python_lines("train_layouts.py", {folder.path()})) {
      losses.push_back(std::strtof(line.c_str(), nullptr));
    }
  }
  test::ScratchDir folder;
  /// Of the epoch that comes next.
  Losses losses = {};
};

class Layouts : public TrainerFixture,
                public ::testing::WithParamInterface<LayoutCase> {
 protected:
  /// Lets Python write all files, once.
  static const PythonFiles& files() {
    static const PythonFiles all;
    return all;
  }
  /// Goes on for one epoch from the file of a layout.
  TrainConfig next(const std::string& function) {
    TrainConfig config = small("run");
    config.lr_step_size = 1;
    config.resume = files().folder / (function + ".pth.tar");
    return config;
  }
};

TEST_P(Layouts, GoesOnWithPythonsBits) {
  const TrainConfig config = next(GetParam().function);
  const auto found = find_resumption(real_fs(), config);
  EXPECT_EQ(found->checkpoint.layout, GetParam().layout);
  EXPECT_FALSE(found->is_in_place);
  EXPECT_EQ(
      found->checkpoint.root.find("best_acc1")->number(),
      GetParam().best);

  auto seen = std::make_shared<RecordingObserver>();
  const TrainResult result = train(config, {.observers = {seen}});
  ASSERT_EQ(files().losses.size(), 4U);
  EXPECT_EQ(seen->losses(), files().losses);
  EXPECT_EQ(seen->steps.front().epoch, 2);
  EXPECT_EQ(seen->steps.front().step, 5);
  EXPECT_NEAR(seen->steps.front().lr, 0.005, 1e-15);
  EXPECT_EQ(result.epochs, 2);
  const auto tested = result.test->metric("top1");
  EXPECT_EQ(result.best, GetParam().best == kNone ? tested : GetParam().best);
}

INSTANTIATE_TEST_SUITE_P(
    Interop,
    Layouts,
    ::testing::Values(
        LayoutCase{"imagenet", "PyTorch's examples"},
        LayoutCase{"imagenet_tensor", "PyTorch's examples"},
        LayoutCase{"imagenet_cuda", "PyTorch's examples"},
        LayoutCase{"imagenet_wrapped", "PyTorch's examples"},
        LayoutCase{"imagenet_old", "PyTorch's examples"},
        LayoutCase{"without_scheduler", "PyTorch's examples"},
        LayoutCase{"torchvision", "torchvision", kNone},
        LayoutCase{"timm", "timm"},
        LayoutCase{"timm_late", "timm"},
        LayoutCase{"timm_top5", "timm", kNone},
        LayoutCase{"notes", "{epoch, model, ...}", kNone},
        LayoutCase{"tutorial", "PyTorch's tutorials", kNone},
        LayoutCase{"tutorial_scheduler", "PyTorch's tutorials", kNone},
        LayoutCase{"compiled", "PyTorch's examples"}),
    [](const auto& one) { return std::string(one.param.function); });

TEST_F(Layouts, TheFileNamesTheModelAndTheRates) {
  for (const char* function : {"imagenet", "torchvision", "timm"}) {
    const auto found = find_resumption(real_fs(), next(function));
    const ckpt::Value& args = *found->checkpoint.root.find("args");
    EXPECT_EQ(args.find("model")->text(), "mlp") << function;
    EXPECT_EQ(args.find("lr")->number(), 0.05) << function;
    EXPECT_EQ(args.find("momentum")->number(), 0.9) << function;
  }
}

TEST_F(Layouts, WhatAScheduleMovesIsTakenAsItWasSet) {
  const auto cycle = find_resumption(real_fs(), next("one_cycle"));
  const ckpt::Value& args = *cycle->checkpoint.root.find("args");
  EXPECT_EQ(args.find("lr")->number(), 0.4);
  EXPECT_EQ(args.find("momentum")->number(), 0.95);
  const auto drops = find_resumption(real_fs(), next("multi_step"));
  TrainConfig config;
  apply_args(config, *drops->checkpoint.root.find("args"));
  EXPECT_EQ(config.lr_milestones, (std::vector<std::int64_t>{3, 5, 5}));
  EXPECT_EQ(config.lr_gamma, 0.25);
}

// Its rate of now is a guess only: a rate that is given counts, and is not
// told to be ignored.
TEST_F(Layouts, AFirstRateThatIsNotSaidIsGuessedAndTold) {
  TrainConfig config = next("imagenet_old");
  config.lr = 0.5;
  const auto found = find_resumption(real_fs(), config);
  EXPECT_EQ(found->checkpoint.root.find("args")->find("lr"), nullptr);
  EXPECT_EQ(found->checkpoint.guessed_args.find("lr")->number(), 0.05);
  RecordingLog log;
  train(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(
          "the optimizer does not say its first learning rate (initial_lr): it "
          "is what --lr says, or else the rate of now, 0.05"));
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ::testing::Not(Contains(HasSubstr("--lr 0.5: ignored"))));
  const auto told = find_resumption(real_fs(), next("imagenet"));
  EXPECT_EQ(told->checkpoint.guessed_args.find("lr"), nullptr);
}

TEST_F(Layouts, NotesSayWhatIsNotUsed) {
  const auto notes_of = [&](const char* function) {
    return find_resumption(real_fs(), next(function))->checkpoint.notes;
  };
  EXPECT_THAT(
      notes_of("tutorial"),
      ::testing::ElementsAre(
          "a checkpoint of another program (PyTorch's tutorials layout): 1 "
          "epoch is done",
          "not used: 'loss'"));
  EXPECT_THAT(
      notes_of("timm_top5"),
      Contains(
          "'metric' is another metric (top5): the best accuracy begins fresh"));
}

TEST_F(Layouts, ACosineThatGoesOnBeyondItsEndIsTold) {
  TrainConfig config = next("cosine_done");
  config.lr_scheduler = "cosineannealinglr";
  const auto told = Contains(
      "the cosine schedule of the checkpoint is lowest after 2 epochs, and the "
      "run goes to 3: from there its rate rises again; --initial-checkpoint "
      "begins a new run with a new schedule");
  config.epochs = 3;
  RecordingLog enough;
  train(config, {.log = &enough});
  EXPECT_THAT(enough.lines[LogLevel::kWarning], ::testing::Not(told));
  config.epochs = 4;
  RecordingLog more;
  train(config, {.log = &more});
  EXPECT_THAT(more.lines[LogLevel::kWarning], told);
}

TEST_F(Layouts, AOneCycleThatIsTooShortIsRefusedWithTheFile) {
  TrainConfig config = next("three_epochs_done");
  config.lr_scheduler = "onecyclelr";
  try {
    train(config);
    ADD_FAILURE() << "went on";
  } catch (const Exception& exception) {
    const Error& error = exception.error();
    EXPECT_EQ(error.detail, "E_SCHEDULE_END");
    EXPECT_EQ(error.path, config.resume);
    EXPECT_THAT(error.message, HasSubstr("has 8 steps, and 12 are done"));
    EXPECT_EQ(error.hint, "--epochs 4 plans a longer one");
  }
  config.epochs = 4;
  EXPECT_EQ(train(config).epochs, 4) << "as the hint says";
}

TEST_F(Layouts, ExactlyIsRefusedForOtherProgramsFiles) {
  TrainConfig config = next("imagenet");
  config.resume_exact = true;
  try {
    train(config);
    ADD_FAILURE() << "went on";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("has no rng, lockstep ("));
  }
}

struct BrokenCase {
  const char* function = "";
  const char* message = "";
  const char* hint = "";
};

class Broken : public Layouts {};

constexpr const char* kWeightsHint =
    ".pth.tar starts a new run from its weights";
constexpr const char* kLookHint = ".pth.tar' shows what it holds";

constexpr std::array kBroken{
    BrokenCase{"without_optimizer", "missing 'optimizer' (", kWeightsHint},
    BrokenCase{
        "epoch_as_text",
        "'epoch' must be a whole number >= 0, got str",
        kLookHint},
    BrokenCase{
        "negative_epoch",
        "'epoch' must be a whole number >= 0, got -1",
        kLookHint},
    BrokenCase{"weights", "the file holds weights only", kWeightsHint},
    BrokenCase{
        "weights_in_a_dict",
        "missing 'epoch', 'optimizer' (",
        kWeightsHint},
    BrokenCase{
        "whole_model",
        "an object of class 'train.MLP', not the state of a run",
        kWeightsHint},
    BrokenCase{"adam", "has no 'momentum' (", "--opt adam goes on with it"},
    BrokenCase{
        "rmsprop",
        "has no 'dampening' (",
        "no --opt goes on with rmsprop; --initial-checkpoint "},
    BrokenCase{
        "empty_optimizer",
        "optimizer state has no 'param_groups' (",
        "the checkpoint has no state of an optimizer; --initial-checkpoint "},
    BrokenCase{
        "exponential",
        "StepLR state has no 'step_size' (",
        "no --lr-scheduler goes on with ExponentialLR; --initial-checkpoint "},
    BrokenCase{
        "cosine",
        "StepLR state has no 'step_size' (",
        "--lr-scheduler cosineannealinglr goes on with it"},
};

TEST_F(Broken, FilesGiveClearErrorsBeforeARunFolderIsMade) {
  for (const BrokenCase& one : kBroken) {
    try {
      train(next(one.function));
      ADD_FAILURE() << one.function << " was taken";
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().code, ErrorCode::kMismatch) << one.function;
      EXPECT_THAT(error.what(), HasSubstr(one.message)) << one.function;
      EXPECT_THAT(error.what(), HasSubstr(one.hint)) << one.function;
    }
    EXPECT_FALSE(real_fs().stat(dir_ / "run")) << one.function;
  }
}

} // namespace
} // namespace lockstep::train
