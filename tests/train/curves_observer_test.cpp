// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/curves_observer.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/support/python.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;

using CurvesObserverTest = TrainerFixture;

TEST_F(CurvesObserverTest, AResumedRunShowsTheEpochsOfEveryStart) {
  const auto read = [&] {
    return test::python_lines("train_curves.py", {dir_ / "run/results.svg"});
  };
  TrainConfig config = small("run");
  train(config);
  EXPECT_THAT(
      read(),
      IsSupersetOf(
          {"run", "Loss", "Accuracy (%)", "Learning rate", "train", "test"}));
  // Over the steps until there are epochs enough: loss, accuracy and top-5 of
  // the training and the rate are curves of 8 points, those of the tests of 2,
  // as in the legends.
  EXPECT_THAT(read(), Contains("step"));
  EXPECT_EQ(std::ranges::count(read(), "points 8"), 4);
  EXPECT_EQ(std::ranges::count(read(), "points 2"), 3 + 7);
  config.resume = "auto";
  config.epochs = 5;
  train(config);
  // Two curves of loss, accuracy and top-5, one of the rate.
  EXPECT_THAT(read(), Contains("epoch"));
  EXPECT_EQ(std::ranges::count(read(), "points 5"), 7);
}

TEST_F(CurvesObserverTest, AFolderOfAnyNameGivesXml) {
  TrainConfig config = small("a & <b>");
  config.epochs = 1;
  train(config);
  EXPECT_THAT(
      test::python_lines("train_curves.py", {dir_ / "a & <b>/results.svg"}),
      Contains("a & <b>"));
}

} // namespace
} // namespace lockstep::train
