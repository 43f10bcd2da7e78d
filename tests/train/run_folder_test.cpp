// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/run_folder.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/observers/run_outputs.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class RunFolderTest : public ::testing::Test {
 protected:
  void put_checkpoint(const std::string& folder) {
    fs_.create_directories(folder).value();
    write_file_atomically(fs_, folder + "/checkpoint-00000001.pth.tar", "bytes")
        .value();
  }
  MemoryFs fs_;
};

TEST_F(RunFolderTest, OutputIsUsedAsItIs) {
  const RunFolder folder = create_run_folder(fs_, {.output = "out/run"});
  EXPECT_EQ(folder.path, "out/run");
  EXPECT_EQ(folder.taken, "");
  EXPECT_THAT(
      read_text(fs_, "out/run/args.yaml").value(),
      HasSubstr("model: \"resnet18\""));
}

TEST_F(RunFolderTest, AFolderThatHoldsARunIsLeftAlone) {
  put_checkpoint("out");
  EXPECT_EQ(create_run_folder(fs_, {.output = "out"}).path, "out-2");
  const RunFolder third = create_run_folder(fs_, {.output = "out"});
  EXPECT_EQ(third.path, "out-3");
  EXPECT_EQ(third.taken, "out");
}

TEST_F(RunFolderTest, NamesGoBelowRuns) {
  EXPECT_EQ(create_run_folder(fs_, {.name = "mine"}).path, "runs/mine");
  EXPECT_EQ(create_run_folder(fs_, {.name = "mine"}).path, "runs/mine-2");
  EXPECT_EQ(
      create_run_folder(fs_, {.output = "out/", .name = "mine"}).path,
      "out/mine");
  EXPECT_THAT(
      create_run_folder(fs_, {.model = "mlp"}).path,
      MatchesRegex("runs/[0-9]{8}-[0-9]{6}-mlp"));
}

// Longer names than "checkpoint-99999999.pth.tar" are less as texts.
TEST_F(RunFolderTest, StepsAreComparedAsNumbers) {
  constexpr std::int64_t kStep = 99'999'999;
  fs_.create_directories("out").value();
  for (std::int64_t step = kStep - 2; step <= kStep + 1; ++step) {
    write_file_atomically(fs_, "out/" + checkpoint_name(step), "bytes").value();
  }
  fs_.symlink(checkpoint_name(kStep), format("out/{}", kLatestFile)).value();
  fs_.symlink(checkpoint_name(kStep - 1), format("out/{}", kBestFile)).value();
  prune_checkpoints(fs_, "out", 1).value();
  EXPECT_EQ(
      list_checkpoints(fs_, "out").value(),
      (std::vector{
          checkpoint_name(kStep + 1),
          checkpoint_name(kStep),
          checkpoint_name(kStep - 1)}));
}

TEST_F(RunFolderTest, AFolderThatCannotBeWrittenIsAnError) {
  FaultFs full(fs_, {.error_number = 28, .byte_budget = 10});
  try {
    create_run_folder(full, {.output = "out"});
    FAIL() << "a full disk was not noticed";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kIo);
  }
}

TEST_F(RunFolderTest, AFolderInUseIsRefusedAndSaysWho) {
  const RunFolder running = create_run_folder(fs_, {.output = "out"});
  try {
    continue_run_folder(fs_, "out");
    FAIL() << "two runs in one folder";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_LOCKED");
    EXPECT_THAT(error.error().message, HasSubstr("in use by process"));
  }
}

TEST_F(RunFolderTest, AFolderIsFreeWhenItsRunIsOver) {
  { const RunFolder over = create_run_folder(fs_, {.output = "out"}); }
  EXPECT_EQ(continue_run_folder(fs_, "out").path, "out");
}

TEST(GoesOnInPlace, WhateverPathNamesTheFolder) {
  namespace stdfs = std::filesystem;
  const test::ScratchDir dir;
  stdfs::create_directories(dir / "runs/a");
  stdfs::create_directories(dir / "runs/b");
  stdfs::create_directory_symlink(dir / "runs", dir / "linked");
  const ResumePoint from{.folder = dir / "runs/a"};
  const auto goes_on = [&](const TrainConfig& config) {
    return goes_on_in_place(real_fs(), config, from);
  };
  const std::string relative = stdfs::relative(dir / "runs/a");
  for (const std::string& output :
       {dir / "runs/a",
        dir / "runs/a/",
        dir / "runs/b/../a",
        dir / "linked/a",
        relative}) {
    EXPECT_TRUE(goes_on({.output = output})) << output;
  }
  EXPECT_TRUE(goes_on({.output = dir / "linked", .name = "a"}));
  EXPECT_TRUE(goes_on({}));
  EXPECT_FALSE(goes_on({.output = dir / "runs/b"}));
  EXPECT_FALSE(goes_on({.output = dir / "runs/none"}));
}

} // namespace
} // namespace lockstep::train
