// SPDX-License-Identifier: BSD-3-Clause
//
// Files that are read with the input that is named stay, also with --force.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

class InputParts : public testing::Test {
 protected:
  test::ShellOutcome run(const std::string& arguments) {
    return test::run_shell(format(
        "cd '{}' && '{}' ckpt {}",
        dir_.path(),
        test::kProgram,
        arguments));
  }
  void expect_kept(const std::string& input, const std::string& part) {
    const std::string before = test::file_text(dir_ / part);
    ASSERT_FALSE(before.empty()) << part;
    for (const char* to : {"safetensors", "pt"}) {
      const auto result = run(format(
          "convert {} {} --to {} --dtype float16 --force",
          input,
          part,
          to));
      EXPECT_EQ(result.status, 2) << result.err;
      EXPECT_THAT(result.err, testing::HasSubstr("(E_SAME_FILE)"));
      EXPECT_EQ(test::file_text(dir_ / part), before) << part;
    }
  }
  const test::ScratchDir dir_;
};

TEST_F(InputParts, OfAFolderStay) {
  std::filesystem::copy_file("testdata/valid/dataparallel.pt", dir_ / "in.pt");
  ASSERT_EQ(run("convert in.pt dcp --to dcp").status, 0);
  for (const char* part : {"dcp/.metadata", "dcp/__0_0.distcp"}) {
    expect_kept("dcp", part);
  }
  std::filesystem::create_symlink("dcp/.metadata", dir_ / "link");
  expect_kept("dcp", "link");
  for (const char* folder : {"dcp/", "dcp//", "./dcp", "\"$PWD/dcp\""}) {
    expect_kept(folder, "dcp/__0_0.distcp");
  }
  // A file that lies beside them is no part.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run("convert dcp dcp/mine.pt --force").status, 0);
  }
}

TEST_F(InputParts, OfAnIndexStay) {
  std::filesystem::copy_file("testdata/valid/dataparallel.pt", dir_ / "in.pt");
  ASSERT_EQ(run("convert in.pt in.safetensors --shard 50B").status, 0);
  std::string shard;
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    const std::string name = entry.path().filename().string();
    shard = name.find("-00001-of-") != std::string::npos ? name : shard;
  }
  const std::string index = "in.safetensors.index.json";
  std::filesystem::create_symlink(index, dir_ / "other.index.json");
  for (const std::string& name :
       {index,
        "./" + index,
        "\"$PWD\"/" + index,
        std::string("other.index.json")}) {
    expect_kept(name, shard);
  }
  EXPECT_EQ(run("convert in.safetensors.index.json new.safetensors").status, 0);
}

} // namespace
} // namespace lockstep
