// SPDX-License-Identifier: BSD-3-Clause
//
// Every dtype, layout, pickle protocol, optimizer and scheduler: the tensors we
// read are those Python sees, byte by byte.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/oracle_support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

struct Case {
  std::string name = {};
  /// Lines of the digest.
  std::string rows = {};
};

std::vector<Case> cases_in(const std::string& printed) {
  constexpr std::string_view kFile = "file\t";
  std::vector<Case> cases;
  for (const std::string& line : split(printed, '\n')) {
    if (line.starts_with(kFile)) {
      cases.push_back({.name = line.substr(kFile.size())});
    } else if (!line.empty()) {
      cases.back().rows += line + "\n";
    }
  }
  return cases;
}

TEST(ContentOracle, EqualsPythons) {
  const test::ScratchDir folder;
  const auto cases =
      cases_in(test::run_python("ckpt_content.py", {folder.path()}));
  ASSERT_GE(cases.size(), 80U);
  for (const Case& expected : cases) {
    for (const bool use_mmap : {true, false}) {
      LoadOptions options{.use_mmap = use_mmap};
      if (expected.name.ends_with("_unsaid")) {
        options.byteorder = std::endian::big;
      }
      const auto file = load(folder / (expected.name + ".pt"), options);
      ASSERT_TRUE(file) << expected.name << ": " << to_string(file.error());
      EXPECT_EQ(test::rows_of(file->root), expected.rows) << expected.name;
    }
  }
}

} // namespace
} // namespace lockstep::ckpt
