// SPDX-License-Identifier: BSD-3-Clause
//
// Our digest of what PyTorch saves against the digest it computes itself.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

TEST(DigestOracle, EqualsPyTorchs) {
  const test::ScratchDir folder;
  const std::string printed =
      test::run_python("ckpt_digest.py", {"--cases", folder.path()});
  int cases = 0;
  for (const std::string& line : split(printed, '\n')) {
    if (line.empty()) {
      continue;
    }
    const auto row = split(line, '\t');
    ASSERT_EQ(row.size(), 2U) << line;
    for (const bool use_mmap : {true, false}) {
      const auto file = load(row[0], {.use_mmap = use_mmap});
      ASSERT_TRUE(file) << to_string(file.error());
      const auto text = digest(file->root);
      ASSERT_TRUE(text) << to_string(text.error());
      EXPECT_EQ(*text, row[1]) << row[0];
    }
    ++cases;
  }
  EXPECT_GE(cases, 6);
}

} // namespace
} // namespace lockstep::ckpt
