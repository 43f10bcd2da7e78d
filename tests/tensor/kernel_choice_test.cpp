// SPDX-License-Identifier: BSD-3-Clause
//
// In a program that links no lockstep::kernels. With them: kernels_test.
#include "lockstep/tensor/internal/kernel_choice.h"

#include <gmock/gmock.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(KernelChoice, IsLibTorchsWhereAProgramHasNoOthers) {
  EXPECT_EQ(own_kernels(), nullptr);
  choose_kernels("exact");
  choose_kernels("torch");
  try {
    choose_kernels("lockstep");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(
        exception.error().hint,
        testing::HasSubstr("lockstep::kernels::install()"));
  }
}

} // namespace
} // namespace lockstep
