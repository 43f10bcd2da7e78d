// SPDX-License-Identifier: BSD-3-Clause
//
// That the file is XML is for Python to say: tests/train/curves_observer_test.
#include "lockstep/report/curves.h"

#include <limits>

#include <gmock/gmock.h>

namespace lockstep::report {
namespace {

using ::testing::DoubleEq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string draw(const std::vector<Curve>& curves) {
  const std::vector<Panel> panels{{.title = "Loss", .curves = curves}};
  return draw_curves("run", "epoch", panels);
}

// How often `part` is in `text`.
int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(AxisTicks, AreRoundNumbersAroundTheRange) {
  struct Row {
    double low;
    double high;
    bool whole;
    std::vector<double> ticks;
  };
  const std::vector<Row> rows{
      {0, 1, false, {0, 0.2, 0.4, 0.6, 0.8, 1.0}},
      {0.11, 2.31, false, {0, 0.5, 1, 1.5, 2, 2.5}},
      {51, 93, false, {50, 60, 70, 80, 90, 100}},
      {-3, 4, false, {-4, -2, 0, 2, 4}},
      {1, 3, true, {1, 2, 3}},
      {1, 50, true, {0, 10, 20, 30, 40, 50}},
      {0.5, 1.5, true, {0, 1, 2}},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(
        axis_ticks(row.low, row.high, 5, row.whole),
        Pointwise(DoubleEq(), row.ticks))
        << row.low << " to " << row.high;
  }
}

TEST(Curves, OneEpochIsAPointInTheMiddle) {
  const std::string svg =
      draw({{.name = "train", .x = {1}, .y = {2.0}}, {"test", {1}, {1.5}}});
  EXPECT_EQ(count(svg, "<circle"), 2) << "one in the legend";
  EXPECT_EQ(count(svg, ">epoch</text>"), 1);
  EXPECT_EQ(count(svg, ">1</text>"), 1) << "the only tick of the epochs";
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Curves, RawNumbersArePaleBehindTheSmoothedOnes) {
  const std::string svg =
      draw({{.name = "a", .x = {1, 2}, .y = {2, 2}, .raw = {1, 3}}});
  EXPECT_EQ(count(svg, "stroke-opacity"), 1);
  EXPECT_LT(svg.find("stroke-opacity"), svg.find("stroke-width=\"2\""));
  EXPECT_EQ(count(svg, "<circle"), 1) << "in the legend alone";
}

TEST(Curves, APanelOfAPageSaysItsNumbers) {
  const std::string svg = draw_panel(
      {.title = "Loss <",
       .curves =
           {{"train", {1, 2, 3}, {2.5, kNan, 0.5}}, {"test", {1}, {kNan}}}},
      "step");
  EXPECT_THAT(
      svg,
      HasSubstr("aria-label=\"Loss &lt; by step; train from 2.5 to 0.5; test "
                "without numbers\""));
  EXPECT_THAT(svg, HasSubstr("class=\"c1\""));
}

TEST(Smoothed, AveragesAWindowAndLeavesOutWhatIsNotFinite) {
  EXPECT_THAT(
      smoothed({0, 3, kNan, 5}),
      Pointwise(DoubleEq(), {1.5, 1.5, 4.0, 5.0}));
  EXPECT_TRUE(smoothed({}).empty());
}

TEST(Curves, WhatIsNotFiniteLeavesAGap) {
  const std::string whole = draw({{"a", {1, 2, 3, 4}, {4, 3, 2, 1}}});
  const std::string broken = draw({{"a", {1, 2, 3, 4}, {4, kNan, 2, 1}}});
  EXPECT_EQ(count(broken, "<polyline"), count(whole, "<polyline") + 1);
  EXPECT_THAT(broken, Not(HasSubstr("nan")));
}

TEST(Curves, NumbersThatAreAllEqualOrNoneAreDrawn) {
  for (const std::vector<double>& y :
       {std::vector<double>{1e16, 1e16}, {0, 0}, {kNan, kNan}, {-2, -2}}) {
    const std::string svg = draw({{"a", {1, 2}, y}});
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(Curves, ManyEpochsHaveNoMarksAndNamesAreText) {
  Curve curve{.name = "<b> & \"c\""};
  for (int i = 1; i <= 50; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(1.0 / i);
  }
  const std::string svg = draw({curve});
  EXPECT_EQ(count(svg, "<circle"), 1) << "only in the legend";
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt; &amp; &quot;c&quot;"));
}

} // namespace
} // namespace lockstep::report
