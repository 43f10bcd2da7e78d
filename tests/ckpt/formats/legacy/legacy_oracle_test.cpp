// SPDX-License-Identifier: BSD-3-Clause
//
// PyTorch is the judge: its legacy files come out of our load and save byte by
// byte, but for the keys, which are addresses there.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

TEST(ResavedLegacyFilesOracle, EqualPyTorchByteByByte) {
  const test::ScratchDir python;
  const test::ScratchDir ours;
  std::size_t cases = 0;
  const std::string names = test::run_python("ckpt_legacy.py", {python.path()});
  for (const std::string& name : split(names, '\n')) {
    if (name.empty()) {
      continue;
    }
    ++cases;
    const auto file = load(python / (name + ".pt"));
    ASSERT_TRUE(file) << name << ": " << to_string(file.error());
    EXPECT_EQ(file->format, "legacy");
    const std::string path = ours / (name + ".pt");
    const Status status = save(path, file->root, {.format = "pt-legacy"});
    ASSERT_TRUE(status) << name << ": " << to_string(status.error());
    EXPECT_EQ(
        *read_text(real_fs(), python / (name + ".pt")),
        *read_text(real_fs(), path))
        << name;
  }
  EXPECT_GE(cases, 25U);
}

} // namespace
} // namespace lockstep::ckpt
