// SPDX-License-Identifier: BSD-3-Clause
//
// The checkpoints of the source notes, written by Python, go on with Python's
// bits for several epochs. The script is tests/oracle/train_notes.py.
#include <cstdlib>

#include <gmock/gmock.h>

#include "tests/support/python.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Losses = std::vector<float>;

class NotesFiles : public TrainerFixture,
                   public ::testing::WithParamInterface<const char*> {
 protected:
  NotesFiles() {
    for (const std::string& line :
         test::python_lines("train_notes.py", {dir_.path(), GetParam()})) {
      python_.push_back(std::strtof(line.c_str(), nullptr));
    }
  }
  /// The losses of three epochs, of the script with a scheduler or without.
  [[nodiscard]] Losses python(bool has_scheduler) const {
    const auto half = std::ssize(python_) / 2;
    return has_scheduler ? Losses(python_.begin() + half, python_.end())
                         : Losses(python_.begin(), python_.begin() + half);
  }
  Losses go_on(const std::string& file, std::int64_t step_size) {
    TrainConfig config = small(file);
    config.model = GetParam();
    config.resume = dir_ / (file + ".pth.tar");
    config.epochs = 4;
    config.batch_size = 32;
    config.max_train_samples = 64;
    config.lr_step_size = step_size;
    config.lr_gamma = step_size == 1 ? 0.5 : 0.1;
    auto seen = std::make_shared<RecordingObserver>();
    const TrainResult result =
        train(config, {.log = &log_, .observers = {seen}});
    EXPECT_LT(result.best, 100.0);
    EXPECT_GT(result.best, 0.0) << "mIoU is no accuracy";
    return seen->losses();
  }

  RecordingLog log_;

 private:
  Losses python_;
};

TEST_P(NotesFiles, GoOnWithPythonsBits) {
  ASSERT_EQ(python(/*has_scheduler=*/true).size(), 6U);
  EXPECT_EQ(go_on("miou", 30), python(/*has_scheduler=*/false));
  EXPECT_EQ(go_on("miou_wrapped", 30), python(/*has_scheduler=*/false));
  EXPECT_THAT(
      log_.lines[LogLevel::kInfo],
      IsSupersetOf(
          {"a checkpoint of another program ({epoch, best_mIoU, ...} layout): "
           "1 epoch is done",
           "'best_mIoU' is another metric: the best accuracy begins fresh"}));
  EXPECT_THAT(
      log_.lines[LogLevel::kWarning],
      IsSupersetOf(
          {"no scheduler in the file: it begins at epoch 2 of its schedule",
           "no rng in the file: random numbers begin fresh, as --seed says"}));
}

TEST_P(NotesFiles, GoOnWithTheirSchedule) {
  EXPECT_EQ(go_on("model", 1), python(/*has_scheduler=*/true));
  EXPECT_THAT(
      log_.lines[LogLevel::kInfo],
      Contains(
          "a checkpoint of another program ({epoch, model, ...} layout): 1 "
          "epoch is done"));
  EXPECT_THAT(
      log_.lines[LogLevel::kWarning],
      AllOf(
          Not(Contains(HasSubstr("scheduler"))),
          Contains(HasSubstr("no rng in the file"))));
}

INSTANTIATE_TEST_SUITE_P(
    Interop,
    NotesFiles,
    ::testing::Values("mlp", "resnet18"),
    [](const auto& one) { return std::string(one.param); });

} // namespace
} // namespace lockstep::train
