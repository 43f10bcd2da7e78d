// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/convolution_terms.h"

#include <array>
#include <ostream>

#include <gmock/gmock.h>

namespace lockstep::kernels {

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for it
void PrintTo(const Term& term, std::ostream* out) {
  *out << term.output << " += pixels " << term.pixel << " x taps " << term.tap
       << " (" << term.length << ")";
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

  [[nodiscard]] std::vector<Term> terms() const {
    return convolution_terms(line(), line());
  }
};

TEST(ConvolutionTerms, OfOnePixelAreTheMiddleTap) {
  const Square square;
  EXPECT_EQ(square.line().first_tap, 1);
  EXPECT_EQ(square.line().live_taps, 1);
  EXPECT_THAT(square.terms(), ElementsAre(Term{.length = 1}));
}

TEST(ConvolutionTerms, OfAStrideToOnePixelAreOneRun) {
  const Square square{.map = 2, .stride = 2};
  EXPECT_EQ(square.line().first_tap, 1);
  EXPECT_EQ(square.line().live_taps, 2);
  EXPECT_THAT(square.terms(), ElementsAre(Term{.length = 4}));
}

TEST(ConvolutionTerms, OfSmallMapsAreRowsOfTaps) {
  const Square square{.map = 2};
  EXPECT_EQ(square.line().live_taps, 3);
  EXPECT_THAT(
      square.terms(),
      ElementsAre(
          Term{.output = 0, .pixel = 0, .tap = 4, .length = 2},
          Term{.output = 0, .pixel = 2, .tap = 7, .length = 2},
          Term{.output = 1, .pixel = 0, .tap = 3, .length = 2},
          Term{.output = 1, .pixel = 2, .tap = 6, .length = 2},
          Term{.output = 2, .pixel = 0, .tap = 1, .length = 2},
          Term{.output = 2, .pixel = 2, .tap = 4, .length = 2},
          Term{.output = 3, .pixel = 0, .tap = 0, .length = 2},
          Term{.output = 3, .pixel = 2, .tap = 3, .length = 2}));
}

TEST(ConvolutionTerms, OfDilatedTapsAreSingle) {
  const Square square{.map = 3, .padding = 0, .dilation = 2};
  EXPECT_EQ(square.line().outputs, 0);
  EXPECT_THAT(square.terms(), IsEmpty());
  const Square padded{.map = 2, .kernel = 2, .padding = 1, .dilation = 2};
  EXPECT_EQ(padded.line().outputs, 2);
  // Output 0 meets pixel 1 under tap 1, output 1 pixel 0 under tap 0.
  EXPECT_THAT(
      padded.terms(),
      ElementsAre(
          Term{.output = 0, .pixel = 3, .tap = 3, .length = 1},
          Term{.output = 1, .pixel = 2, .tap = 2, .length = 1},
          Term{.output = 2, .pixel = 1, .tap = 1, .length = 1},
          Term{.output = 3, .pixel = 0, .tap = 0, .length = 1}));
}

TEST(ConvolutionTerms, KnowWhereAllIsPadding) {
  const Square square{.map = 1, .kernel = 2, .stride = 3, .padding = 2};
  // Outputs begin at pixels -2 and 1: both beside the map.
  EXPECT_EQ(square.line().outputs, 2);
  EXPECT_EQ(square.line().live_taps, 0);
  EXPECT_THAT(square.terms(), IsEmpty());
}

} // namespace
} // namespace lockstep::kernels
