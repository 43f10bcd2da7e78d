// SPDX-License-Identifier: BSD-3-Clause
//
// The program as users meet it: exit status, stdout, stderr.
#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/compat.h"
#include "tests/cli_train/process.h"
#include "tests/support/python.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::cli_train {
namespace {

using test::Process;
using test::ScopedVariable;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kData = "/usr/share/datasets/fashion-mnist/";

class ProgramTest : public ::testing::Test {
 protected:
  /// A training run of a second, plus `more` flags.
  std::vector<std::string> small(
      const std::vector<std::string>& more = {},
      const std::string& epochs = "1",
      const std::string& samples = "256") {
    std::vector<std::string> args{
        "train",
        "--model=mlp",
        "--threads=1",
        "--epochs=" + epochs,
        "--max-train-samples=" + samples,
        "--max-eval-samples=128",
        "--lr=0.05"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  std::string output() {
    return "--output=" + dir_ / "run";
  }
  void put(const std::string& name, std::string_view bytes) {
    const auto file = real_fs().create(dir_ / name, 0644).value();
    file->write(as_byte_span(bytes)).value();
    file->close().value();
  }
  /// A data folder that holds FashionMNIST, but `bytes` as training images.
  void put_data(std::string_view bytes) {
    for (const std::string name :
         {"train-labels-idx1-ubyte.gz",
          "t10k-images-idx3-ubyte.gz",
          "t10k-labels-idx1-ubyte.gz"}) {
      put(name, read_text(real_fs(), kData + name).value());
    }
    put("train-images-idx3-ubyte.gz", bytes);
  }
  const test::ScratchDir dir_;
};

TEST_F(ProgramTest, TrainsAndSaysWhereTheResultIs) {
  Process program(small({output()}));
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_THAT(program.output(), StartsWith("1 epoch, best Acc@1 "));
  EXPECT_THAT(program.output(), HasSubstr(dir_ / "run"));
  EXPECT_THAT(program.errors(), HasSubstr("Test:  Acc@1 "));
  EXPECT_TRUE(real_fs().stat(dir_ / "run/checkpoint.pth.tar"));
}

TEST_F(ProgramTest, QuietPrintsErrorsOnly) {
  Process program(small({output(), "--quiet"}));
  EXPECT_EQ(program.wait(), 0);
  EXPECT_EQ(program.errors(), "");
}

TEST_F(ProgramTest, DumpedSettingsGiveTheSameRun) {
  Process dump(small({"--dump-config"}));
  EXPECT_EQ(dump.wait(), 0);
  put("my.yaml", dump.output());
  Process again({"train", "--config", dir_ / "my.yaml", "--dump-config"});
  EXPECT_EQ(again.wait(), 0);
  EXPECT_EQ(again.output(), dump.output());
}

TEST_F(ProgramTest, ResumeTakesTheSettingsFromTheCheckpoint) {
  Process first(small({output()}));
  ASSERT_EQ(first.wait(), 0) << first.errors();
  Process second({"train", "--resume", dir_ / "run", "--epochs", "2"});
  EXPECT_EQ(second.wait(), 0) << second.errors();
  EXPECT_THAT(second.output(), StartsWith("2 epochs"));
  EXPECT_THAT(second.output(), HasSubstr(dir_ / "run\n"));
  EXPECT_THAT(second.errors(), HasSubstr("model mlp"));
}

TEST_F(ProgramTest, ADryRunSaysEverythingAndWritesNothing) {
  Process first(small({output()}));
  ASSERT_EQ(first.wait(), 0) << first.errors();
  const auto before = real_fs().list(dir_ / "run").value();
  put("my.yaml", "workers: 2\nkeep: 3\n");
  const ScopedVariable batch("LOCKSTEP_BATCH_SIZE", "64");
  const ScopedVariable keep("LOCKSTEP_KEEP", "4");
  Process plan(
      {"train",
       "--resume",
       dir_ / "run",
       "--config=" + dir_ / "my.yaml",
       "--epochs=3",
       "--lr=0.2",
       "--dry-run"});
  EXPECT_EQ(plan.wait(), 0) << plan.errors();
  EXPECT_EQ(plan.errors(), "");
  const std::vector<std::string> expected{
      "model mlp with 235,146 parameters on cpu \\(single\\), 1 thread,",
      "run folder " + dir_ / "run\n",
      "--epochs 3 \\(was 1\\): from the command line\n",
      "--batch-size 64 \\(was 128\\): from LOCKSTEP_BATCH_SIZE\n",
      "--lr 0.2: ignored, .* checkpoint's 0.05\n",
      "resumed .* at epoch 2,",
      "steps: 4 per epoch, 8 to go\n",
      "--model +mlp +the checkpoint\n",
      "--workers +2 +/.*my.yaml:1\n",
      "--keep +4 +LOCKSTEP_KEEP\n",
      "--momentum +0.9 +the checkpoint\n",
      "--lr +0.05 +the checkpoint\n",
      "--quiet +false +default\n"};
  for (const std::string& text : expected) {
    EXPECT_THAT(plan.output(), ::testing::ContainsRegex(text));
  }
  EXPECT_EQ(real_fs().list(dir_ / "run").value(), before);
  Process fresh(small({"--output", dir_ / "new", "--explain"}));
  EXPECT_EQ(fresh.wait(), 0) << fresh.errors();
  EXPECT_FALSE(real_fs().stat(dir_ / "new"));
}

TEST_F(ProgramTest, AWrongVariableExitsWith2AndIsNamed) {
  const ScopedVariable epochs("LOCKSTEP_EPOCHS", "many");
  Process program({"train", "--model=mlp"});
  EXPECT_EQ(program.wait(), 2);
  EXPECT_EQ(
      program.errors(),
      "[train.flags] --epochs: expected a whole number, got 'many' "
      "(environment variable LOCKSTEP_EPOCHS). (E_FLAG_VALUE)\n");
}

TEST_F(ProgramTest, VariablesThatNothingReadsAreTold) {
  const ScopedVariable epoch("LOCKSTEP_EPOCH", "5");
  const ScopedVariable dry("LOCKSTEP_DRY_RUN", "true");
  Process program(small({output()}));
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_THAT(
      program.output(),
      HasSubstr("LOCKSTEP_EPOCH has no effect: did you mean LOCKSTEP_EPOCHS?"));
  EXPECT_FALSE(real_fs().stat(dir_ / "run")) << "a dry run";
}

TEST_F(ProgramTest, ALossWithoutNumbersExitsWith1) {
  std::vector<std::string> args = small({output()});
  args.back() = output();
  args[args.size() - 2] = "--lr=1e30";
  Process program(args);
  EXPECT_EQ(program.wait(), 1) << program.errors();
  EXPECT_THAT(program.errors(), HasSubstr("(E_NAN_LOSS)"));
}

TEST_F(ProgramTest, HelpAndVersionGoToStdout) {
  Process help({"train", "--help"});
  EXPECT_EQ(help.wait(), 0);
  EXPECT_THAT(help.output(), StartsWith("Usage: lockstep train"));
  Process version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_THAT(
      version.output(),
      HasSubstr(format("LibTorch {}", kTorchHeaderVersion)));
}

TEST_F(ProgramTest, UsageErrorsExitWith2) {
  Process flag({"train", "--epoch", "3"});
  EXPECT_EQ(flag.wait(), 2);
  EXPECT_EQ(
      flag.errors(),
      "[train.flags] unknown flag '--epoch'. Hint: did you mean '--epochs'? "
      "(E_FLAGS)\n");
  Process command({"trian"});
  EXPECT_EQ(command.wait(), 2);
}

TEST_F(ProgramTest, AMissingDeviceExitsWith5AndSaysWhatToDo) {
  Process program(small({"--device=cuda:63", output()}));
  EXPECT_EQ(program.wait(), 5);
  EXPECT_THAT(program.errors(), HasSubstr("Hint: "));
}

TEST_F(ProgramTest, MissingDataExitsWith4) {
  Process program(small({dir_ / "nowhere", output()}));
  EXPECT_EQ(program.wait(), 4);
  EXPECT_THAT(program.errors(), HasSubstr(dir_ / "nowhere"));
}

TEST_F(ProgramTest, CutDataExitsWith3) {
  const std::string whole =
      read_text(real_fs(), std::string(kData) + "train-images-idx3-ubyte.gz")
          .value();
  put_data(std::string_view(whole).substr(0, 100'000));
  Process program(small({dir_.path(), output()}));
  EXPECT_EQ(program.wait(), 3) << program.errors();
  EXPECT_THAT(program.errors(), HasSubstr("train-images-idx3-ubyte.gz"));
}

TEST_F(ProgramTest, ForeignDataExitsWith3) {
  put_data(
      read_text(real_fs(), std::string(kData) + "t10k-labels-idx1-ubyte.gz")
          .value());
  Process program(small({dir_.path(), output()}));
  EXPECT_EQ(program.wait(), 3) << program.errors();
}

TEST_F(ProgramTest, AnOutputThatCannotBeWrittenExitsWith4BeforeTraining) {
  put("file", "in the way");
  Process program(small({"--output", dir_ / "file/run"}));
  EXPECT_EQ(program.wait(), 4);
  EXPECT_THAT(program.errors(), ::testing::Not(HasSubstr("Epoch:")));
}

TEST_F(ProgramTest, CtrlCAfterACheckpointExitsWith75AndSaysHowToGoOn) {
  Process program(small({output()}, "1000000"));
  ASSERT_TRUE(program.wait_for("Test:")) << program.errors();
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 75) << program.errors();
  EXPECT_THAT(
      program.errors(),
      HasSubstr("Hint: lockstep train --resume " + dir_ / "run"));
  Process resumed({"train", "--resume", dir_ / "run", "--test-only"});
  EXPECT_EQ(resumed.wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.output(), StartsWith("Acc@1 "));
}

TEST_F(ProgramTest, ASignalInTheFirstEpochLosesNothing) {
  const auto run = [&](const std::string& folder) {
    return small(
        {"--output",
         dir_ / folder,
         "--batch-size=8",
         "--log-interval=1",
         "--resume=auto"},
        "1",
        "4000");
  };
  Process straight(run("straight"));
  EXPECT_EQ(straight.wait(), 0) << straight.errors();
  for (const int signal : {SIGINT, SIGTERM}) {
    Process program(run("run"));
    ASSERT_TRUE(program.wait_for("Epoch: [1]")) << program.errors();
    program.send(signal);
    EXPECT_EQ(program.wait(), 75) << program.errors();
    EXPECT_THAT(program.errors(), HasSubstr("stopped in epoch "));
  }
  Process resumed({"train", "--resume", dir_ / "run"});
  EXPECT_EQ(resumed.wait(), 0) << resumed.errors();
  for (const std::string name : {"/steps.csv", "/checkpoint.pth.tar"}) {
    EXPECT_EQ(
        read_text(real_fs(), dir_ / ("run" + name)).value(),
        read_text(real_fs(), dir_ / ("straight" + name)).value())
        << name;
  }
}

TEST_F(ProgramTest, ARunKilledBeforeItsFirstCheckpointBeginsAgainInItsFolder) {
  Process killed(small({output(), "--batch-size=8"}, "1", "60000"));
  ASSERT_TRUE(killed.wait_for("Epoch: [1]")) << killed.errors();
  killed.send(SIGKILL);
  EXPECT_EQ(killed.wait(), 128 + SIGKILL);
  Process again({"train", "--resume", dir_ / "run", "--max-train-samples=128"});
  EXPECT_EQ(again.wait(), 0) << again.errors();
  EXPECT_THAT(again.errors(), HasSubstr("run has no checkpoint yet"));
  EXPECT_THAT(again.errors(), HasSubstr("left by a process that died (pid"));
  EXPECT_THAT(again.errors(), HasSubstr("batch 8;"));
  EXPECT_THAT(
      read_text(real_fs(), dir_ / "run/steps.csv").value(),
      StartsWith("step,epoch,loss,lr\n1,1,"));
}

TEST_F(ProgramTest, AFolderInUseExitsWith4AndSaysByWhom) {
  Process running(small({output()}, "1000000"));
  ASSERT_TRUE(running.wait_for("Test:")) << running.errors();
  Process second({"train", "--resume", dir_ / "run"});
  EXPECT_EQ(second.wait(), 4);
  EXPECT_THAT(second.errors(), HasSubstr("run is in use by process "));
}

TEST_F(ProgramTest, TheBestCheckpointOpensANewFolder) {
  Process first(small({output()}, "3"));
  ASSERT_EQ(first.wait(), 0) << first.errors();
  Process best(small({output(), "--resume=best", "--epochs=4"}, "4"));
  EXPECT_EQ(best.wait(), 0) << best.errors();
  EXPECT_THAT(best.output(), HasSubstr("4 epochs"));
}

TEST_F(ProgramTest, OneProcessOfSeveralTrainsWithTheOthersOnly) {
  const ScopedVariable size("WORLD_SIZE", "2");
  const ScopedVariable rank("RANK", "1");
  const ScopedVariable local("LOCAL_RANK", "1");
  const ScopedVariable locals("LOCAL_WORLD_SIZE", "2");
  Process program(small({output()}));
  EXPECT_EQ(program.wait(), 2);
  EXPECT_THAT(
      program.errors(),
      HasSubstr("environment variable MASTER_ADDR expected, but not set"));
}

TEST_F(ProgramTest, TrainsOnAFolderOfPictures) {
  const std::string folder = dir_ / "pictures";
  test::run_python("data_classes.py", {folder, "12"});
  const std::vector<std::string> args{
      "train",
      "--data=" + folder,
      "--model=mlp",
      "--img-size=16",
      "--val-split=0.25",
      "--threads=1",
      "--batch-size=9",
      "--lr=0.05",
      "--epochs=4",
      output()};
  Process program(args);
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_THAT(program.output(), HasSubstr("best Acc@1 100.00"));
  EXPECT_THAT(
      read_text(real_fs(), dir_ / "run/args.yaml").value(),
      testing::AllOf(
          HasSubstr("data: \"folder\""),
          HasSubstr("val_split: 0.25")));
  // Resumed by name alone.
  Process more({"train", "--resume=" + dir_ / "run", "--epochs=5"});
  EXPECT_EQ(more.wait(), 0) << more.errors();
  EXPECT_THAT(more.output(), StartsWith("5 epochs, best Acc@1 100.00"));
}

} // namespace
} // namespace lockstep::cli_train
