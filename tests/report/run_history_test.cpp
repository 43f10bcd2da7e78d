// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/run_history.h"

#include <cmath>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/report/run_curves.h"

namespace lockstep::report {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string step_line(int step, double loss) {
  return format(
      R"({{"event":"step","step":{},"loss":{},"top1":50,"lr":0.1,)"
      R"("samples":8,"seconds":0.5}})",
      step,
      loss);
}

std::string epoch_line(int epoch, int step) {
  return format(
      R"({{"event":"epoch","epoch":{},"step":{},"train_loss":1,"val_loss":2,)"
      R"("train_top1":60,"val_top1":55,"val_top5":null,"best_by":"val_top1",)"
      R"("lr":0.1,"images_per_s":99}})",
      epoch,
      step);
}

std::vector<std::string> titles(const RunCurves& curves) {
  std::vector<std::string> names;
  for (const Panel& panel : curves.panels) {
    names.push_back(panel.title);
  }
  return names;
}

TEST(RunHistory, KeepsTheNumbersOfEachEvent) {
  RunHistory history;
  history.add_all(
      step_line(50, 0.5) + "\n" + epoch_line(1, 94) + "\n" +
      R"({"event":"step","step":100,"loss":"nan"})" + "\nno json\n[1]\n\n" +
      step_line(150, 0.25)); // half written: no line feed
  EXPECT_THAT(history.steps().column("step"), ElementsAre(50, 100));
  EXPECT_TRUE(std::isnan(history.steps().column("loss")[1]));
  EXPECT_THAT(history.epochs().column("val_top1"), ElementsAre(55));
  EXPECT_THAT(history.epochs().column("val_top5"), IsEmpty());
  EXPECT_FALSE(history.epochs().has("nothing"));
  EXPECT_EQ(history.best_by(), "val_top1");
}

TEST(RunHistory, ManyStepsBecomeAverages) {
  RunHistory history;
  constexpr int kSteps = 20'000;
  for (int step = 1; step <= kSteps; ++step) {
    history.add(step_line(step, step));
  }
  const auto steps = history.steps().column("step");
  EXPECT_LE(steps.size(), 4096U);
  EXPECT_GE(steps.size(), 2048U);
  EXPECT_THAT(steps.front(), DoubleNear(4.5, 4)) << "of the first few";
  EXPECT_THAT(steps.back(), DoubleNear(kSteps, 8));
  EXPECT_EQ(history.steps().column("loss"), steps) << "averaged alike";
}

TEST(RunCurves, FewEpochsAreDrawnOverTheirSteps) {
  RunHistory history;
  for (int step = 1; step <= 30; ++step) {
    history.add(step_line(step, step % 2));
  }
  history.add(epoch_line(1, 30));
  const RunCurves curves = curves_of(history, /*speed=*/true);
  EXPECT_EQ(curves.x_name, "step");
  EXPECT_THAT(
      titles(curves),
      ElementsAre(
          "Loss",
          "Accuracy (%)",
          "Learning rate",
          "Images per second"));
  const Curve& train = curves.panels[0].curves[0];
  EXPECT_EQ(train.raw[1], 0);
  EXPECT_NEAR(train.y[10], 0.5, 0.2) << "smoothed";
  const Curve& test = curves.panels[0].curves[1];
  EXPECT_THAT(test.x, ElementsAre(30));
  EXPECT_THAT(test.y, ElementsAre(2));
  EXPECT_EQ(curves.panels[3].curves[0].raw[0], 16);
}

TEST(RunCurves, EnoughEpochsAreDrawnOverEpochs) {
  RunHistory history;
  for (int epoch = 1; epoch <= 5; ++epoch) {
    for (int i = 0; i < 4; ++i) {
      history.add(step_line(epoch * 4 + i, 1));
    }
    history.add(epoch_line(epoch, epoch * 4));
  }
  const RunCurves curves = curves_of(history);
  EXPECT_EQ(curves.x_name, "epoch");
  EXPECT_THAT(curves.panels[0].curves, SizeIs(2));
  EXPECT_THAT(curves.panels[0].curves[0].x, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(curves.panels[0].curves[0].raw, IsEmpty());
}

TEST(RunCurves, NothingHasNoPanels) {
  EXPECT_THAT(curves_of({}).panels, IsEmpty());
}

TEST(MetricTitle, IsInWordsForAccuracy) {
  EXPECT_EQ(metric_title("top1"), "Accuracy (%)");
  EXPECT_EQ(metric_title("top5"), "Top-5 accuracy (%)");
  EXPECT_EQ(metric_title("topaz"), "topaz");
  EXPECT_EQ(metric_title("miou"), "miou");
}

} // namespace
} // namespace lockstep::report
