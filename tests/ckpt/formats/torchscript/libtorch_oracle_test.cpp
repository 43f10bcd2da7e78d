// SPDX-License-Identifier: BSD-3-Clause
//
// torch.jit of the wheel is the judge: it reads the archives we write, and we
// read its programs.
#include <map>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/oracle_support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

// Digest lines by file.
std::map<std::string, std::string> rows_in(const std::string& printed) {
  constexpr std::string_view kMark = "file\t";
  std::map<std::string, std::string> rows;
  std::string name;
  for (const std::string& line : split(printed, '\n')) {
    if (line.starts_with(kMark)) {
      name = line.substr(kMark.size());
      rows[name];
    } else if (!line.empty()) {
      rows[name] += line + "\n";
    }
  }
  return rows;
}

TEST(LibtorchOracle, JitReadsWhatWeWriteAndWeReadItsPrograms) {
  const test::ScratchDir folder;
  const auto saved =
      rows_in(test::run_python("ckpt_libtorch.py", {"write", folder.path()}));
  ASSERT_EQ(saved.size(), 9U);
  std::vector<std::string> args{"read"};
  std::map<std::string, std::string> expected;
  for (const auto& [name, rows] : saved) {
    const auto file = load(folder / (name + ".pt"));
    ASSERT_TRUE(file) << name << ": " << to_string(file.error());
    EXPECT_EQ(test::rows_of(file->root), rows) << name;
    if (name.starts_with("script_")) {
      EXPECT_EQ(file->format, "torchscript") << name;
      continue;
    }
    const std::string path = folder / (name + ".libtorch");
    const Status status = save(path, file->root, {.format = "libtorch"});
    ASSERT_TRUE(status) << name << ": " << to_string(status.error());
    const auto again = load(path);
    ASSERT_TRUE(again) << name << ": " << to_string(again.error());
    EXPECT_EQ(test::rows_of(again->root), rows) << name;
    args.push_back(path);
    expected[path] = rows;
  }
  EXPECT_EQ(rows_in(test::run_python("ckpt_libtorch.py", args)), expected);
  // Freezing makes constants of weights: 3 x 2 and 3 floats.
  const auto frozen = load(folder / "script_frozen.pt");
  ASSERT_TRUE(frozen);
  EXPECT_EQ(frozen->constants, 2U);
  EXPECT_EQ(frozen->constant_bytes, 36U);
}

TEST(LibtorchOracle, JitFindsTiedWeightsTied) {
  const test::ScratchDir folder;
  const std::string program = folder / "program.pt";
  test::run_python("ckpt_libtorch.py", {"tie", program});
  const auto file = load(program);
  ASSERT_TRUE(file) << to_string(file.error());
  const std::string path = folder / "tied.libtorch";
  const Status status = save(path, file->root, {.format = "libtorch"});
  ASSERT_TRUE(status) << to_string(status.error());
  for (const std::string& name : {program, path}) {
    EXPECT_EQ(
        test::run_python("ckpt_libtorch.py", {"tied", name}),
        "True False (1-2j)\n")
        << name;
  }
}

} // namespace
} // namespace lockstep::ckpt
