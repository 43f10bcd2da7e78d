// SPDX-License-Identifier: BSD-3-Clause
//
// Python is the judge: a state that went to C++'s form and back trains on to
// the same bits.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/optim.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

TEST(OptimOracle, StatesComeBackFromCppAndTrainOn) {
  const test::ScratchDir folder;
  std::string expected;
  for (const std::string& name : split(
           test::run_python("ckpt_optim.py", {"write", folder.path()}),
           '\n')) {
    if (name.empty()) {
      continue;
    }
    const auto file = load(folder / (name + ".pt"));
    ASSERT_TRUE(file) << to_string(file.error());
    const auto cpp = optim_to_cpp(file->root);
    ASSERT_TRUE(cpp) << name << ": " << to_string(cpp.error());
    const std::string archive = folder / (name + ".cpp.pt");
    const Status status = save(archive, cpp->root, {.format = "libtorch"});
    ASSERT_TRUE(status) << name << ": " << to_string(status.error());
    const auto read = load(archive);
    ASSERT_TRUE(read) << name << ": " << to_string(read.error());
    const auto python = optim_to_python(read->root);
    ASSERT_TRUE(python) << name << ": " << to_string(python.error());
    ASSERT_TRUE(save(folder / (name + ".back.pt"), python->root));
    expected += name + " ok\n";
  }
  EXPECT_EQ(
      test::run_python("ckpt_optim.py", {"check", folder.path()}),
      expected);
}

} // namespace
} // namespace lockstep::ckpt
