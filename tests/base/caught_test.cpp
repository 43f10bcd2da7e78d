// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/caught.h"

#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

Result<int> call(void (*thrown)()) {
  return caught("test.op", [&]() -> Result<int> {
    thrown();
    return 7;
  });
}

TEST(Caught, GivesWhatIsReturnedOrTheErrorOfWhatIsThrown) {
  EXPECT_EQ(call([] {}).value(), 7);
  const Error own{
      .code = ErrorCode::kNotFound,
      .op = "ckpt.value",
      .message = "no such key"};
  EXPECT_EQ(
      call([] {
        raise(
            {.code = ErrorCode::kNotFound,
             .op = "ckpt.value",
             .message = "no such key"});
      }).error(),
      own);
  const Error memory = call([] { throw std::bad_alloc(); }).error();
  EXPECT_EQ(memory.code, ErrorCode::kIo);
  EXPECT_EQ(memory.op, "test.op");
  const Error other = call([] { throw std::out_of_range("row 3"); }).error();
  EXPECT_EQ(other.code, ErrorCode::kInternal);
  EXPECT_EQ(other.message, "row 3");
}

} // namespace
} // namespace lockstep
