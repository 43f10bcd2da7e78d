// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/numbers.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ParseNumber, TakesWholeTextsOnly) {
  EXPECT_EQ(parse_number<double>("-1.5"), -1.5);
  EXPECT_TRUE(std::isnan(parse_number<double>("nan").value()));
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x1", "one", "1.5"}) {
    EXPECT_FALSE(parse_number<int>(text)) << text;
  }
}

TEST(ParseNumber, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_FALSE(parse_number<std::uint16_t>("65536"));
  EXPECT_FALSE(parse_number<std::uint16_t>("-1"));
  EXPECT_FALSE(parse_number<double>("1e999"));
}

TEST(ParseNumber, KeepsToItsBounds) {
  EXPECT_EQ(parse_number<int>("0", 0), 0);
  EXPECT_EQ(parse_number<int>("9", 0, 9), 9);
  EXPECT_FALSE(parse_number<int>("10", 0, 9));
  EXPECT_FALSE(parse_number<int>("-1", 0));
}

} // namespace
} // namespace lockstep
