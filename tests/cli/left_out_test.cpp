// SPDX-License-Identifier: BSD-3-Clause
//
// What commands say of what the format of the new file has no place for.
#include <string>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

class LeftOut : public testing::TestWithParam<const char*> {};

TEST_P(LeftOut, VersionsAreNamed) {
  const test::ScratchDir dir;
  const auto run = [&dir](const std::string& more) {
    return test::run_shell(format(
        "'{}' ckpt {} '{}' --force {}",
        test::kProgram,
        GetParam(),
        dir / "out.npz",
        more));
  };
  const auto said = run("");
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(
      said.out,
      testing::HasSubstr("left out: _metadata, the versions of the modules; "
                         "npz has no place for it"));
  EXPECT_THAT(run("--json").out, testing::HasSubstr(R"(["_metadata"])"));
}

INSTANTIATE_TEST_SUITE_P(
    Commands,
    LeftOut,
    testing::Values(
        "average testdata/valid/dataparallel.pt "
        "testdata/valid/dataparallel.pt -o",
        "extract-model testdata/valid/whole_model.pt"));

} // namespace
} // namespace lockstep
