// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/progress_text.h"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"

namespace lockstep::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ProgressFacts kFacts{
    .label = "Epoch 1/20",
    .done = 469,
    .total = 938,
    .seconds = 12.4,
    .rate = 1843.21,
    .accuracy = 0.51,
    .loss = 1.4};

Clock::time_point at(double seconds) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds)));
}

TEST(DrawBar, ShowsEverythingInAscii) {
  EXPECT_EQ(
      draw_bar(kFacts, {.width = 120}),
      "Epoch 1/20 469/938 [==========>.........] eta 0:00:12 1843 img/s - "
      "accuracy: 0.5100 - loss: 1.4000");
}

TEST(DrawBar, UsesLinesAndColourWhereItMay) {
  const std::string line =
      draw_bar(kFacts, {.width = 120, .unicode = true, .colour = true});
  std::string bar = "\x1b[32m";
  for (int i = 0; i < 20; ++i) {
    bar += i < 10 ? "\xe2\x94\x81" : "\xe2\x94\x80";
    bar += i == 9 ? "\x1b[0m" : "";
  }
  EXPECT_THAT(line, HasSubstr(" " + bar + " "));
}

TEST(DrawBar, FitsIntoEveryWidthAndKeepsTheCounterLongest) {
  for (int width = 0; width <= 120; ++width) {
    const std::string line = draw_bar(kFacts, {.width = width});
    EXPECT_LE(display_width(line), std::max(width - 1, 0));
    if (width > 8) {
      EXPECT_THAT(line, HasSubstr("469/938"));
    }
  }
  EXPECT_THAT(draw_bar(kFacts, {.width = 40}), HasSubstr("loss: 1.4000"));
  EXPECT_THAT(draw_bar(kFacts, {.width = 40}), Not(HasSubstr("[=")));
}

TEST(DrawBar, FillsOnlyWhenAllIsDone) {
  ProgressFacts facts{.done = 99, .total = 100};
  EXPECT_EQ(draw_bar(facts, {}), " 99/100 [===================>]");
  facts.done = 100;
  EXPECT_EQ(draw_bar(facts, {}), "100/100 [====================]");
  facts.done = 0;
  EXPECT_EQ(draw_bar(facts, {}), "  0/100 [>...................]");
}

TEST(DrawBar, CannotBeBrokenByALabelOrANumber) {
  const ProgressFacts facts{
      .label = "a\nb\x1b[2J",
      .done = 1,
      .total = 0,
      .loss = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(
      draw_bar(facts, {}),
      "a\\x0ab\\x1b[2J 1 [>...................] - loss: nan");
}

TEST(PlainLine, SaysTheSameInWords) {
  EXPECT_EQ(
      plain_line(kFacts),
      "Epoch 1/20: 469/938 (50 %), eta 0:00:12, 1843 img/s, accuracy 0.5100, "
      "loss 1.4000");
  EXPECT_EQ(
      plain_line({.done = 938, .total = 938, .seconds = 64, .finished = true}),
      "938/938 (100 %), 0:01:04");
}

TEST(RateMeter, KnowsNothingBeforeTheSecondObservation) {
  RateMeter meter;
  EXPECT_FALSE(meter.step_seconds());
  meter.observe(1, 64, at(10));
  EXPECT_FALSE(meter.samples_per_second());
  EXPECT_FALSE(meter.remaining_seconds(100, at(10)));
  meter.observe(1, 64, at(20));
  EXPECT_FALSE(meter.step_seconds());
}

TEST(RateMeter, LeavesOutTheFirstStep) {
  RateMeter meter;
  meter.observe(1, 64, at(10));
  meter.observe(3, 192, at(12));
  EXPECT_DOUBLE_EQ(meter.step_seconds().value(), 1.0);
  EXPECT_DOUBLE_EQ(meter.samples_per_second().value(), 64.0);
  EXPECT_DOUBLE_EQ(meter.remaining_seconds(10, at(12.5)).value(), 6.5);
  EXPECT_DOUBLE_EQ(meter.remaining_seconds(10, at(100)).value(), 0.0);
}

// A slow first step, 10 % noise, a pause in every 50th step.
TEST(RateMeter, EstimatesTheEndWithinATenthAfterATwentiethOfTheEpoch) {
  constexpr int kSteps = 1000;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  std::vector<double> ends;
  double time = 0.0;
  for (int step = 1; step <= kSteps; ++step) {
    time += step == 1 ? 5.0 : 0.1 * noise(random);
    time += step % 50 == 0 ? 0.2 : 0.0;
    ends.push_back(time);
  }
  RateMeter meter;
  for (int step = 1; step < kSteps; ++step) {
    const double now = ends[static_cast<std::size_t>(step - 1)];
    meter.observe(step, step, at(now));
    if (step >= kSteps / 20 && step < kSteps * 9 / 10) {
      const double left = time - now;
      ASSERT_NEAR(
          meter.remaining_seconds(kSteps, at(now)).value(),
          left,
          left / 10)
          << step;
    }
  }
}

} // namespace
} // namespace lockstep::report
