// SPDX-License-Identifier: BSD-3-Clause
//
// Where a run goes on, and what it must leave alone.
#include <filesystem>
#include <functional>

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "lockstep/train/checkpoints/run_files.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ResumeTest : public TrainerFixture {
 protected:
  Error refused(const TrainConfig& config, TrainerOptions options = {}) {
    try {
      train(config, std::move(options));
    } catch (const Exception& error) {
      return error.error();
    }
    ADD_FAILURE() << "the run was not refused";
    return {};
  }
  void copy(const std::string& from, const std::string& to) {
    const std::string bytes = read_text(real_fs(), dir_ / from).value();
    const auto file = real_fs().create(dir_ / to, 0644).value();
    file->write(as_byte_span(bytes)).value();
    file->close().value();
  }
};

TEST_F(ResumeTest, CheckpointsOfAnotherProgramAreLeftAlone) {
  train(small("run"));
  // As timm names them, beside its own args.yaml.
  real_fs().create_directories(dir_ / "timm").value();
  for (const std::string name : {"3", "4"}) {
    copy("run/checkpoint.pth.tar", "timm/checkpoint-" + name + ".pth.tar");
  }
  copy("run/args.yaml", "timm/args.yaml");
  const auto before = real_fs().list(dir_ / "timm").value();
  TrainConfig config = small("");
  config.output = "";
  config.resume = dir_ / "timm/checkpoint-4.pth.tar";
  config.epochs = 4;
  EXPECT_EQ(train(config).folder, dir_ / "timm-2");
  EXPECT_EQ(real_fs().list(dir_ / "timm").value(), before);
}

TEST_F(ResumeTest, AChoiceThatIsOldByTheTimeOfTheLockIsRefused) {
  TrainConfig config = small("run");
  train(config);
  config.resume = config.output;
  config.epochs = 3;
  const auto early = find_resumption(real_fs(), config);
  train(config);
  const std::string rows = get("run", "steps.csv");
  const Error error = refused(config, {.resumption = early});
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(error.message, HasSubstr("trained here meanwhile"));
  EXPECT_EQ(get("run", "steps.csv"), rows);
}

TEST_F(ResumeTest, ANewFolderHoldsWhereItBegan) {
  TrainConfig config = small("run");
  train(config);
  config.resume = dir_ / "run/checkpoint-00000004.pth.tar";
  config.output = dir_ / "fork";
  // Stopped at once, as by a kill, after the first step.
  FaultFs none(real_fs());
  train(config, {.fs = &none, .should_stop = [] { return true; }});
  EXPECT_EQ(
      list_checkpoints(real_fs(), dir_ / "fork").value(),
      (std::vector<std::string>{checkpoint_name(5), checkpoint_name(4)}));
  config.resume = "auto";
  EXPECT_EQ(train(config).steps, 8);
}

TEST_F(ResumeTest, CheckpointsThatAreGoneAreNoNewRun) {
  TrainConfig config = small("run");
  train(config);
  for (const std::string& name :
       list_checkpoints(real_fs(), config.output).value()) {
    real_fs().remove(config.output + "/" + name).value();
  }
  const std::string rows = get("run", "results.csv");
  config.resume = config.output;
  const Error error = refused(config);
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("they are gone"));
  EXPECT_EQ(get("run", "results.csv"), rows);
}

TEST_F(ResumeTest, TheNewestThatIsGoneIsTold) {
  TrainConfig config = small("run");
  train(config);
  real_fs().remove(dir_ / ("run/" + checkpoint_name(8))).value();
  config.resume = config.output;
  RecordingLog log;
  EXPECT_EQ(train(config, {.log = &log}).steps, 8);
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("leads to is gone")));
}

TEST_F(ResumeTest, SettingsThatTheCheckpointDecidesAreToldAndNotRecorded) {
  TrainConfig config = small("run");
  train(config);
  config.resume = config.output;
  config.epochs = 3;
  config.lr = 7;
  RecordingLog log;
  train(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ElementsAre(
          "--lr 7.0: ignored, the run goes on with the checkpoint's 0.05"));
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains("--epochs 3 (was 2): from the program"));
  EXPECT_THAT(get("run", "args.yaml"), HasSubstr("lr: 0.05\n"));
  EXPECT_EQ(*(*(*checkpoint("run").find("args")).find("lr")).number(), 0.05);
}

TEST_F(ResumeTest, WhatContradictsTheCheckpointIsRefused) {
  TrainConfig config = small("run");
  train(config);
  config.resume = config.output;
  struct Contradiction {
    std::function<void(TrainConfig&)> change = {};
    std::string detail = {};
    std::string message = {};
  };
  for (const Contradiction& c : std::initializer_list<Contradiction>{
           {[](auto& wanted) { wanted.model = "resnet18"; },
            "E_OTHER_MODEL",
            "the checkpoint is arch 'mlp', the run asks for 'resnet18'"},
           {[](auto& wanted) { wanted.opt = "adam"; },
            "E_OTHER_SETTING",
            "the checkpoint was trained with --opt sgd, the run asks for --opt "
            "adam"},
           {[](auto& wanted) { wanted.img_size = 32; },
            "E_OTHER_SETTING",
            "--img-size 28, the run asks for --img-size 32"},
           {[](auto& wanted) { wanted.lr_scheduler = "constant"; },
            "E_OTHER_SETTING",
            "--lr-scheduler steplr, the run asks for --lr-scheduler "
            "constant"}}) {
    TrainConfig wanted = config;
    c.change(wanted);
    const Error error = refused(wanted);
    EXPECT_EQ(error.code, ErrorCode::kMismatch);
    EXPECT_EQ(error.detail, c.detail);
    EXPECT_THAT(error.message, HasSubstr(c.message));
    EXPECT_THAT(error.hint, HasSubstr("--initial-checkpoint"));
  }
}

TEST_F(ResumeTest, TheImageSizeIsTheCheckpoints) {
  TrainConfig config = small("run");
  config.img_size = 14;
  config.epochs = 1;
  RecordingLog log;
  train(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains("images 28x28 resized to 14x14"));
  const OwnParts parts = named_parts(config);
  config.resume = config.output;
  config.img_size = 0;
  config.epochs = 2;
  EXPECT_EQ(train(config, {.own = parts}).epochs, 2);
  EXPECT_THAT(get("run", "args.yaml"), HasSubstr("img_size: 14\n"));
}

TEST_F(ResumeTest, AFinishedRunSaysHowToGoOn) {
  TrainConfig config = small("run");
  train(config);
  config.resume = config.output;
  RecordingLog log;
  EXPECT_EQ(train(config, {.log = &log}).epochs, 2);
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains("finished: 2 of 2 epochs. Hint: --epochs 3 goes on"));
  // Settings that trained nothing are not written down.
  const std::string args = get("run", "args.yaml");
  config.epochs = 1;
  config.label_smoothing = 0.3;
  EXPECT_EQ(train(config).epochs, 2);
  EXPECT_EQ(get("run", "args.yaml"), args);
  EXPECT_THAT(get("run", "env.json"), Not(HasSubstr("0.3")));
}

TEST_F(ResumeTest, AOneCycleScheduleEndsWithItsEpochs) {
  TrainConfig config = small("run");
  config.lr_scheduler = "onecyclelr";
  train(config, {.should_stop = [n = 0]() mutable { return ++n == 7; }});
  config.resume = config.output;
  config.epochs = 4;
  const Error error = refused(config);
  EXPECT_EQ(error.detail, "E_SCHEDULE_END");
  EXPECT_THAT(
      error.message,
      HasSubstr("has 2 of 8 steps left, the run would make 10"));
  EXPECT_THAT(error.hint, HasSubstr("--epochs 2 ends with it"));
  EXPECT_THAT(error.path, HasSubstr("checkpoint-00000006"));
}

TEST_F(ResumeTest, AFinishedOneCycleDoesNotOfferMoreEpochs) {
  TrainConfig config = small("run");
  config.lr_scheduler = "onecyclelr";
  train(config);
  config.resume = config.output;
  RecordingLog log;
  train(config, {.log = &log});
  const std::string file = dir_ / "run/checkpoint-00000008.pth.tar";
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(
          "finished: 2 of 2 epochs, and so is the one-cycle schedule. Hint: "
          "--initial-checkpoint " +
          file + " begins a new run"));
  TrainConfig next = small("next");
  next.initial_checkpoint = file;
  EXPECT_EQ(train(next).epochs, 2) << "as the hint says";
}

TEST_F(ResumeTest, ATestAsksForNoSchedule) {
  TrainConfig config = small("run");
  config.lr_scheduler = "onecyclelr";
  train(config);
  config.resume = config.output;
  config.epochs = 4;
  EXPECT_EQ(refused(config).detail, "E_SCHEDULE_END");
  config.test_only = true;
  EXPECT_GT(train(config).test->metric("top1"), 10.0);
}

// Saved by an older version, which had fewer columns.
TEST_F(ResumeTest, ATableWithOtherColumnsIsKeptAndTheWayOutWorks) {
  TrainConfig config = small("run");
  train(config);
  const std::string path = dir_ / "run/steps.csv";
  const std::string old = "step,what\n1,4\n";
  write_file_atomically(real_fs(), path, old).value();
  config.resume = config.output;
  config.epochs = 3;
  const std::string results = get("run", "results.csv");
  const Error error = refused(config);
  EXPECT_EQ(error.detail, "E_OTHER_FILE");
  EXPECT_EQ(error.path, path);
  EXPECT_THAT(
      error.message,
      HasSubstr("other columns: expected 'step,epoch,loss,lr', got "
                "'step,what'"));
  EXPECT_EQ(error.hint, "rename it: a new one is begun beside it");
  EXPECT_EQ(get("run", "steps.csv"), old);
  EXPECT_EQ(get("run", "results.csv"), results);
  EXPECT_EQ(*(*checkpoint("run").find("epoch")).as_int(), 2);

  std::filesystem::rename(path, dir_ / "run/steps-old.csv");
  RecordingLog log;
  EXPECT_EQ(train(config, {.log = &log}).epochs, 3);
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("the checkpoint counted 8, found 0")));
  EXPECT_EQ(get("run", "steps-old.csv"), old);
}

TEST_F(ResumeTest, FirstWeightsNeedNotBeThereAnyMore) {
  TrainConfig config = small("first");
  config.epochs = 1;
  train(config);
  TrainConfig next = small("run");
  next.initial_checkpoint = dir_ / "first/checkpoint.pth.tar";
  next.epochs = 1;
  train(next);
  std::filesystem::remove_all(dir_ / "first");
  next.resume = next.output;
  next.epochs = 2;
  EXPECT_EQ(train(next).epochs, 2);
}

TEST_F(ResumeTest, APathIsAPath) {
  TrainConfig config = small("run");
  train(config);
  config.resume = dir_ / "./run//";
  config.output = dir_ / "run/../run/";
  config.epochs = 3;
  EXPECT_EQ(train(config).folder, dir_ / "run");
}

/// Its normalisation is frozen by the program.
struct FrozenNet : torch::nn::Module {
  FrozenNet() {
    norm->eval();
  }
  at::Tensor forward(const at::Tensor& x) {
    return last->forward(norm->forward(x.flatten(1)));
  }
  torch::nn::BatchNorm1d norm =
      register_module("norm", torch::nn::BatchNorm1d(784));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(784, 10));
};

TEST_F(ResumeTest, WhatAProgramFrozeStaysFrozenAfterATest) {
  for (const std::string devices : {"cpu", "cpu*2"}) {
    TrainConfig config = small("run-" + devices);
    config.devices = devices;
    const auto net = std::make_shared<FrozenNet>();
    train(config, {.own = {.model = net}});
    EXPECT_FALSE(net->norm->is_training());
    EXPECT_EQ(net->norm->running_mean.abs().sum().item<float>(), 0.0F);
    EXPECT_TRUE(net->last->is_training());
  }
}

TEST_F(ResumeTest, WhatAProgramFrozeTakesABatchOfOneImage) {
  for (const std::string devices : {"cpu", "cpu*2"}) {
    TrainConfig config = small("run-" + devices);
    config.devices = devices;
    config.max_train_samples = 66; // 64, 2: one image for each of two devices
    config.batch_size = devices == "cpu" ? 65 : 64;
    const auto net = std::make_shared<FrozenNet>();
    EXPECT_EQ(train(config, {.own = {.model = net}}).steps, 2 * config.epochs);
    EXPECT_EQ(net->norm->running_mean.abs().sum().item<float>(), 0.0F);
  }
}

TEST_F(ResumeTest, ARefusalLeavesTheProgramsModelAsItWas) {
  TrainConfig config = small("run");
  train(config, {.own = {.model = std::make_shared<FrozenNet>()}});
  config.resume = config.output;
  config.resume_exact = true;
  config.batch_size = 32;
  const auto net = std::make_shared<FrozenNet>();
  const at::Tensor before = net->last->weight.detach().clone();
  refused(config, {.own = {.model = net}});
  EXPECT_TRUE(at::equal(net->last->weight, before));
}

TEST_F(ResumeTest, ATrainerRunsOnceAndChecksItsSettings) {
  TrainConfig config = small("run");
  Trainer trainer(config, {.own = named_parts(config)});
  trainer.run();
  EXPECT_THROW(trainer.run(), Exception);
  config.log_interval = 0;
  EXPECT_THAT(refused(config).message, HasSubstr("--log-interval"));
}

TEST(Measure, WithoutMetricsTheOutputsMayBeAnything) {
  const at::Tensor loss = at::full({}, 2.5);
  for (const at::Tensor& outputs : {at::ones({4, 3}), at::ones({})}) {
    const BatchScore score =
        StepResult(measure(loss, outputs, /*targets=*/{}, {}), 2).read();
    EXPECT_EQ(score.loss, 2.5F);
    EXPECT_EQ(score.samples, 2);
    EXPECT_TRUE(score.sums.empty());
  }
}

TEST(RunFilesOnAFullDisk, RowsThatWereDroppedAreNotCounted) {
  MemoryFs disk;
  FaultFs full(disk, {.error_number = 28, .byte_budget = 100});
  RunFiles files(full, [](const Error&) {});
  RunFile& file = files.open("rows.csv");
  const std::string row(1023, 'x');
  for (int i = 0; i < 3000; ++i) {
    file.append(row);
  }
  EXPECT_LT(file.rows(), 1100) << "a MiB of rows waits";
  EXPECT_GT(file.rows(), 900);
}

} // namespace
} // namespace lockstep::train
