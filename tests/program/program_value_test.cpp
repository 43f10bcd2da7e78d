// SPDX-License-Identifier: BSD-3-Clause
//
// Values of programs beside tensors.
#include <cstdint>

#include <gmock/gmock.h>

#include "lockstep/program/program.h"
#include "tests/program/program_cases.h"

namespace lockstep {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(ProgramValue, ANumberThatInt64DoesNotHoldIsRefused) {
  EXPECT_EQ(ProgramValue(std::uint64_t{INT64_MAX}).integer(), INT64_MAX);
  EXPECT_THAT(
      error_of([] { ProgramValue(std::uint64_t{INT64_MAX} + 1); }),
      HasSubstr("up to 9223372036854775807; got 9223372036854775808"));
}

} // namespace
} // namespace lockstep
