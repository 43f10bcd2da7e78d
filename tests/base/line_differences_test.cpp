// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/line_differences.h"

#include <gmock/gmock.h>

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LineDifferences, ShowsBothSides) {
  EXPECT_THAT(line_differences({"a", "b"}, {"a", "b"}), IsEmpty());
  EXPECT_THAT(line_differences({}, {}), IsEmpty());
  EXPECT_THAT(
      line_differences({"a", "b\n"}, {"c", "d"}),
      ElementsAre("'a' and 'c'", R"('b\x0a' and 'd')"));
}

TEST(LineDifferences, OneMayBeLonger) {
  EXPECT_THAT(
      line_differences({"a"}, {"a", "b"}),
      ElementsAre("'nothing' and 'b'"));
  EXPECT_THAT(line_differences({"a"}, {}), ElementsAre("'a' and 'nothing'"));
}

} // namespace
} // namespace lockstep
