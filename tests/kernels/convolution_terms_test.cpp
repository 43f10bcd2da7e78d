// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/convolution_terms.h"

#include <array>
#include <ostream>

#include <gmock/gmock.h>

namespace lockstep::kernels {

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for it
void PrintTo(const TapRun& run, std::ostream* out) {
  *out << "outputs " << run.output << ", pixels " << run.pixel << " ("
       << run.length << ")";
}

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for it
void PrintTo(const Meeting& meeting, std::ostream* out) {
  *out << "outputs " << testing::PrintToString(meeting.outputs) << ", pixels "
       << testing::PrintToString(meeting.pixels);
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A square map and kernel.
struct Square {
  std::int64_t map = 1;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  std::int64_t dilation = 1;

  [[nodiscard]] TapLine line() const {
    const std::array strides{stride, stride};
    const std::array paddings{padding, padding};
    const std::array dilations{dilation, dilation};
    return {
        map,
        kernel,
        {.stride = strides, .padding = paddings, .dilation = dilations},
        0};
  }

  [[nodiscard]] TapTable table() const {
    return {line(), line()};
  }
};

TEST(TapTable, OfOnePixelIsTheMiddleTap) {
  const TapTable table = Square{}.table();
  EXPECT_EQ(table.tap(0, 0), 4);
  const Meeting all{.outputs = {0}, .pixels = {0}};
  EXPECT_THAT(table.meetings_of_outputs(), ElementsAre(all));
  EXPECT_THAT(table.meetings_of_pixels(), ElementsAre(all));
  const auto runs = table.runs_of_taps();
  ASSERT_THAT(runs, SizeIs(9));
  EXPECT_THAT(runs[4], ElementsAre(TapRun{.length = 1}));
  EXPECT_THAT(runs[5], IsEmpty());
}

TEST(TapTable, OfAStrideToOnePixelIsOneMeeting) {
  const Square square{.map = 2, .stride = 2};
  EXPECT_TRUE(square.line().is_dense());
  EXPECT_THAT(
      square.table().meetings_of_outputs(),
      ElementsAre(Meeting{.outputs = {0}, .pixels = {0, 1, 2, 3}}));
  const Square one_tap{.map = 2, .kernel = 1, .stride = 2, .padding = 0};
  EXPECT_FALSE(one_tap.line().is_dense());
  EXPECT_THAT(
      one_tap.table().meetings_of_pixels(),
      ElementsAre(Meeting{.outputs = {0}, .pixels = {0}}));
}

TEST(TapTable, OfFourPixelsIsDense) {
  const Square square{.map = 2};
  EXPECT_TRUE(square.line().is_dense());
  const TapTable table = square.table();
  const Meeting all{.outputs = {0, 1, 2, 3}, .pixels = {0, 1, 2, 3}};
  EXPECT_THAT(table.meetings_of_outputs(), ElementsAre(all));
  EXPECT_THAT(table.meetings_of_pixels(), ElementsAre(all));
  EXPECT_EQ(table.tap(0, 0), 4);
  EXPECT_EQ(table.tap(0, 3), 8);
  EXPECT_EQ(table.tap(3, 0), 0);
  const auto runs = table.runs_of_taps();
  EXPECT_THAT(runs[4], ElementsAre(TapRun{.length = 4}));
  EXPECT_THAT(runs[7], ElementsAre(TapRun{.pixel = 2, .length = 2}));
  EXPECT_THAT(
      runs[3],
      ElementsAre(
          TapRun{.output = 1, .pixel = 0, .length = 1},
          TapRun{.output = 3, .pixel = 2, .length = 1}));
}

TEST(TapTable, OfAShrinkingMapJoinsPixels) {
  const Square square{.map = 4, .stride = 2};
  EXPECT_FALSE(square.line().is_dense());
  const TapTable table = square.table();
  EXPECT_THAT(table.meetings_of_outputs(), SizeIs(4));
  const auto pixels = table.meetings_of_pixels();
  EXPECT_THAT(pixels, SizeIs(9));
  // The last two rows and columns meet the last output only.
  EXPECT_EQ(
      pixels.back(),
      (Meeting{.outputs = {3}, .pixels = {10, 11, 14, 15}}));
}

TEST(TapTable, OfDilatedTapsLeavesPixelsOut) {
  const Square square{.map = 3, .padding = 0, .dilation = 2};
  EXPECT_EQ(square.line().outputs, 0);
  const Square padded{.map = 2, .kernel = 2, .padding = 1, .dilation = 2};
  EXPECT_EQ(padded.line().outputs, 2);
  // Output 0 meets pixel 1 under tap 1, output 1 pixel 0 under tap 0.
  EXPECT_FALSE(padded.line().tap(0, 0));
  EXPECT_EQ(padded.line().tap(0, 1), 1);
  EXPECT_EQ(padded.line().tap(1, 0), 0);
  EXPECT_THAT(padded.table().meetings_of_outputs(), SizeIs(4));
}

TEST(TapLine, NamesTheTapsThatSeePaddingOnly) {
  EXPECT_THAT(Square{.map = 1}.line().dead_taps(), ElementsAre(0, 2));
  EXPECT_THAT(Square{.map = 2}.line().dead_taps(), IsEmpty());
  const Square strided{.map = 2, .kernel = 5, .stride = 3, .padding = 2};
  EXPECT_THAT(strided.line().dead_taps(), ElementsAre(0, 1, 4));
  const Square dilated{.map = 3, .padding = 2, .dilation = 2};
  EXPECT_THAT(dilated.line().dead_taps(), IsEmpty());
}

TEST(TapTable, KnowsWhereAllIsPadding) {
  const Square square{.map = 1, .kernel = 2, .stride = 3, .padding = 2};
  // Outputs begin at pixels -2 and 1: both beside the map.
  EXPECT_EQ(square.line().outputs, 2);
  EXPECT_THAT(square.table().meetings_of_outputs(), IsEmpty());
  EXPECT_THAT(square.table().meetings_of_pixels(), IsEmpty());
  EXPECT_THAT(
      square.table().runs_of_taps(),
      ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), IsEmpty()));
}

} // namespace
} // namespace lockstep::kernels
