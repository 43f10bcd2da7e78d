// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/split.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace lockstep::internal {
namespace {

TEST(Split, NumbersAreMixedAsNamesAre) {
  const std::vector<std::int64_t> groups(5000);
  const SplitSamples parts = split_samples(
      groups,
      [](std::int64_t i) { return std::to_string(i); },
      {.val_share = 0.2},
      "table.csv");
  EXPECT_EQ(parts.val.size(), 1000U);
  std::int64_t run = 0;
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < parts.val.size(); ++i) {
    run = parts.val[i] == parts.val[i - 1] + 1 ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  EXPECT_LT(longest, 10) << "rows side by side";
  for (std::int64_t tenth = 0; tenth < 10; ++tenth) {
    const auto count = std::ranges::count_if(parts.val, [&](std::int64_t i) {
      return i / 500 == tenth;
    });
    EXPECT_NEAR(static_cast<double>(count), 100, 40) << "tenth " << tenth;
  }
}

} // namespace
} // namespace lockstep::internal
