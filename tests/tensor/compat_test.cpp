// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/compat.h"

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

TEST(TorchVersion, OfTheLoadedLibraryIsThatOfTheHeaders) {
  EXPECT_EQ(torch_library_version(), kTorchHeaderVersion);
  EXPECT_NO_THROW(check_torch_version());
}

TEST(TorchVersion, MayDifferInThePatchOnly) {
  const auto parts = split(kTorchHeaderVersion, '.');
  EXPECT_NO_THROW(check_torch_version(parts[0] + "." + parts[1] + ".99"));
  const Error error = test::error_of([] { check_torch_version("2.99.0"); });
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(
      error.message,
      format(
          "LibTorch versions differ: expected {} (headers), got 2.99.0 "
          "(library)",
          kTorchHeaderVersion));
  EXPECT_EQ(
      test::error_of([] { check_torch_version("unknown"); }).code,
      ErrorCode::kUnavailable);
}

TEST(PythonText, QuotesAsPython) {
  EXPECT_EQ(python_repr("a"), "'a'");
  EXPECT_EQ(python_repr("it's"), "\"it's\"");
  EXPECT_EQ(python_repr("'\""), "'\\'\"'");
  EXPECT_EQ(python_repr("a\n\\"), "'a\\n\\\\'");
  EXPECT_EQ(size_text({5, 3}), "torch.Size([5, 3])");
  EXPECT_EQ(size_text({}), "torch.Size([])");
  EXPECT_EQ(tuple_text({3}), "(3,)");
}

} // namespace
} // namespace lockstep
