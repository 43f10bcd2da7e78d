// SPDX-License-Identifier: BSD-3-Clause
//
// `ckpt show --npy` and `ckpt repair` from the outside: the files they write
// hold what they should.
#include <cstdlib>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

int run_program(const std::string& command) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  return std::system((test::kProgram + " " + command).c_str());
}

std::string hash_of(const ckpt::Value& value) {
  const auto rows = ckpt::digest_rows(value);
  EXPECT_TRUE(rows) << to_string(rows.error());
  return rows && rows->size() == 1
             ? rows->front().type + rows->front().shape + rows->front().sha256
             : "";
}

TEST(ShowNpy, HoldsTheElements) {
  const test::ScratchDir folder;
  const std::string source = "testdata/valid/views.pt";
  for (const char* name : {"grid", "transposed", "scalar", "empty", "step"}) {
    const std::string path = folder / "out.npy";
    ASSERT_EQ(
        run_program(format("ckpt show --npy {} {} > {}", source, name, path)),
        0);
    const auto array = ckpt::load(path);
    ASSERT_TRUE(array) << to_string(array.error());
    const auto file = ckpt::load(source);
    ASSERT_TRUE(file);
    const auto tensor = ckpt::find_path(file->root, name);
    ASSERT_TRUE(tensor);
    EXPECT_EQ(hash_of(array->root), hash_of(*tensor)) << name;
  }
}

TEST(Repair, WritesWhatIsSoundAndNothingTwice) {
  const test::ScratchDir folder;
  const std::string out = folder / "out.pt";
  const std::string quiet = " " + out + " > " + (folder / "log") + " 2>&1";
  EXPECT_EQ(
      run_program("ckpt repair testdata/valid/training.pth.tar" + quiet),
      0);
  EXPECT_NE(
      run_program("ckpt repair testdata/valid/training.pth.tar" + quiet),
      0);
  EXPECT_EQ(
      run_program("ckpt diff testdata/valid/training.pth.tar" + quiet),
      0);
}

} // namespace
} // namespace lockstep
