// SPDX-License-Identifier: BSD-3-Clause
//
// What a loop of one's own uses of a run: examples/own_loop.cpp is one.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/state_parts.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OwnLoopTest : public ::testing::Test {
 protected:
  OwnLoopTest() {
    state_.add(number_part("step", step_)).add(number_part("rate", rate_));
    state_.add(model_part(*net_));
  }
  void save(CheckpointWriter& writer, std::int64_t step) {
    step_ = step;
    writer.write(state_.save(), {.step = step});
  }
  std::string file_of(std::int64_t step) {
    return folder_ + "/" + checkpoint_name(step);
  }
  static double step_in(const std::string& path) {
    const FoundCheckpoint found = read_checkpoint(path);
    return found.root.find("step")->number().value();
  }
  void flip_last_byte_of_the_weights(const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(
        static_cast<std::streamoff>(std::filesystem::file_size(path) / 2));
    file.put('\xff');
  }

  const test::ScratchDir dir_;
  const std::string folder_ = dir_ / "deep/run";
  std::int64_t step_ = 0;
  double rate_ = 0.5;
  torch::nn::Linear net_{64, 64};
  RunState state_;
};

TEST_F(OwnLoopTest, FindsNothingWhereNothingIs) {
  EXPECT_FALSE(find_checkpoint(folder_));
  const CheckpointWriter writer(folder_);
  EXPECT_TRUE(real_fs().stat(folder_));
  EXPECT_FALSE(find_checkpoint(folder_));
}

TEST_F(OwnLoopTest, GoesOnFromTheNewestCheckpoint) {
  CheckpointWriter writer(folder_);
  save(writer, 3);
  rate_ = 0.25;
  save(writer, 7);
  writer.finish();
  step_ = 0;
  rate_ = 0.0;
  const auto found = find_checkpoint(folder_);
  EXPECT_EQ(found->path, file_of(7));
  EXPECT_THAT(found->warnings, IsEmpty());
  EXPECT_THAT(state_.load(found->root), IsEmpty());
  EXPECT_EQ(step_, 7);
  EXPECT_EQ(rate_, 0.25);
}

TEST_F(OwnLoopTest, ADamagedCheckpointGivesTheOneBefore) {
  CheckpointWriter writer(folder_);
  save(writer, 3);
  save(writer, 7);
  writer.finish();
  flip_last_byte_of_the_weights(file_of(7));
  const auto found = find_checkpoint(folder_);
  EXPECT_EQ(found->path, file_of(3));
  EXPECT_THAT(found->warnings, SizeIs(1));
  state_.load(found->root);
  EXPECT_EQ(step_, 3);

  flip_last_byte_of_the_weights(file_of(3));
  try {
    find_checkpoint(folder_);
    ADD_FAILURE() << "took a damaged file";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr(file_of(7)));
  }
}

TEST_F(OwnLoopTest, FinishThrowsWhatKeptTheNewestCheckpointBack) {
  CheckpointWriter writer(folder_);
  save(writer, 3);
  writer.finish();
  std::filesystem::remove_all(folder_);
  save(writer, 7);
  EXPECT_THROW(writer.finish(), Exception);
  writer.finish(); // told once
}

TEST_F(OwnLoopTest, AFolderThatCannotBeMadeThrowsAtOnce) {
  std::ofstream(dir_ / "deep") << "in the way";
  EXPECT_THROW(CheckpointWriter{folder_}, Exception);
}

TEST_F(OwnLoopTest, ANumberOfAnotherTypeIsRefusedAndChangesNothing) {
  ckpt::Value root = state_.save();
  root.set("step", 1.5);
  step_ = 2;
  try {
    state_.load(root);
    ADD_FAILURE() << "took 1.5 steps";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(
        error.what(),
        HasSubstr("'step' must be a whole number, got float"));
  }
  EXPECT_EQ(step_, 2);
  // An int is a real number, as in Python.
  root.set("step", 4);
  root.set("rate", 1);
  state_.load(root);
  EXPECT_EQ(step_, 4);
  EXPECT_EQ(rate_, 1.0);
}

TEST_F(OwnLoopTest, EpochsNumberTheFilesOfALoopWithoutSteps) {
  CheckpointWriter writer(folder_);
  for (const std::int64_t epoch : {1, 2, 3, 4}) {
    step_ = epoch;
    writer.write(state_.save(), {.epoch = epoch, .is_best = epoch == 1});
  }
  writer.finish();
  EXPECT_EQ(step_in(file_of(1)), 1.0);
  const std::string best = folder_ + "/" + std::string(kBestFile);
  EXPECT_EQ(step_in(best), 1.0);
  EXPECT_EQ(find_checkpoint(folder_)->path, file_of(4));
  EXPECT_EQ(
      list_checkpoints(real_fs(), folder_).value(),
      (std::vector<std::string>{
          checkpoint_name(4),
          checkpoint_name(3),
          checkpoint_name(1)}));
}

TEST_F(OwnLoopTest, TheBestOneIsNotReplacedByAnother) {
  CheckpointWriter writer(folder_);
  writer.write(state_.save(), {.is_best = false});
  writer.write(state_.save(), {.is_best = true});
  step_ = 7;
  try {
    writer.write(state_.save(), {.is_best = false});
    ADD_FAILURE() << "the best checkpoint is lost";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.error().path, file_of(0));
  }
  writer.finish();
  EXPECT_EQ(step_in(file_of(0)), 0.0);
  writer.write(state_.save(), {.is_best = true}); // a better one
  save(writer, 9);
  writer.finish();
  const std::string best = folder_ + "/" + std::string(kBestFile);
  EXPECT_EQ(step_in(best), 7.0);
}

TEST_F(OwnLoopTest, TheBestOneOfAnEarlierProcessIsNotReplaced) {
  CheckpointWriter(folder_).write(state_.save(), {.is_best = true});
  CheckpointWriter next(folder_);
  EXPECT_THROW(next.write(state_.save(), {}), Exception);
}

// As loops do that save the best one, and then each.
TEST_F(OwnLoopTest, TheBestOneMayBeWrittenAgainUnderItsNumber) {
  CheckpointWriter writer(folder_);
  step_ = 5;
  writer.write(state_.save(), {.step = 5, .is_best = true});
  writer.write(state_.save(), {.step = 5});
  writer.finish();
  EXPECT_EQ(step_in(folder_ + "/" + std::string(kBestFile)), 5.0);
}

} // namespace
} // namespace lockstep::train
