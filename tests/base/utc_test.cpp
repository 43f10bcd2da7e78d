// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/utc.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using std::chrono::seconds;

TEST(Utc, TextsAreReadBack) {
  const std::chrono::sys_seconds time(seconds(1'795'428'245));
  EXPECT_EQ(utc_text(time), "2026-11-23 10:04:05 UTC");
  EXPECT_EQ(utc_text(time, "{2:02}.{1:02}. {5:02}"), "23.11. 05");
  EXPECT_EQ(parse_utc(utc_text(time)), time);
  EXPECT_FALSE(parse_utc("2026-11-23 10:04:05"));
  EXPECT_FALSE(parse_utc("2026-13-23 10:04:05 UTC"));
}

TEST(Utc, AgesHaveTheUnitThatMatters) {
  EXPECT_EQ(age_text(seconds(-5)), "0 s");
  EXPECT_EQ(age_text(seconds(59)), "59 s");
  EXPECT_EQ(age_text(seconds(60)), "1 min");
  EXPECT_EQ(age_text(seconds(3600)), "1 h");
  EXPECT_EQ(age_text(seconds(47 * 3600)), "47 h");
  EXPECT_EQ(age_text(seconds(48 * 3600)), "2 d");
}

} // namespace
} // namespace lockstep
