// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/confusion.h"

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"

namespace lockstep::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// How often `part` is in `text`.
std::size_t occurrences(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

TEST(Confusion, DrawsACellForEachPair) {
  const std::vector<std::string> names{"cat", "<dog> & co", "\u732b"};
  const std::string svg =
      draw_confusion("runs/a", names, {{20, 0, 0}, {5, 15, 0}, {0, 0, 0}});
  EXPECT_EQ(occurrences(svg, "class=\"cell\""), 3U) << "zeros are as the paper";
  EXPECT_EQ(occurrences(svg, "cat</text>"), 2U) << "on both axes";
  EXPECT_EQ(occurrences(svg, "&lt;dog&gt; &amp; co</text>"), 2U);
  EXPECT_EQ(occurrences(svg, "\u732b</text>"), 2U);
  EXPECT_THAT(svg, HasSubstr(">20</text>"));
  EXPECT_THAT(svg, HasSubstr(">15</text>"));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"1.000\"")) << "the whole of a row";
  EXPECT_THAT(svg, Not(HasSubstr("nan"))) << "a row without samples";
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Confusion, ManyClassesHaveNoNumbersAndLongNamesAreCut) {
  std::vector<std::string> names;
  for (int i = 0; i < 41; ++i) {
    names.push_back(format("{}{}", std::string(60, 'x'), i));
  }
  const std::vector<std::vector<double>> counts(
      names.size(),
      std::vector<double>(names.size(), 7));
  const std::string svg = draw_confusion("many", names, counts);
  EXPECT_THAT(svg, Not(HasSubstr(">7</text>")));
  EXPECT_THAT(svg, Not(HasSubstr(names.front())));
  EXPECT_EQ(occurrences(svg, "x...</text>"), 2 * names.size());
}

} // namespace
} // namespace lockstep::report
