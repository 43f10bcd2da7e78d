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
  // Two curves of loss, two of accuracy, one of top-5, one of the rate; the
  // rest is legend.
  EXPECT_EQ(std::ranges::count(read(), "points 2"), 6 + 6);
  config.resume = "auto";
  config.epochs = 5;
  train(config);
  EXPECT_EQ(std::ranges::count(read(), "points 5"), 6);
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
