// SPDX-License-Identifier: BSD-3-Clause
//
// Commands that take several files and folders: a bad one does not stop the
// others, and the exit status is the worst.
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using nlohmann::json;
using test::run_shell;
using testing::HasSubstr;
using testing::Not;

class SeveralFiles : public testing::Test {
 protected:
  SeveralFiles() {
    namespace fs = std::filesystem;
    fs::create_directories(dir_ / "runs/a");
    fs::copy_file("testdata/valid/tiny.pt", dir_ / "runs/a/model.pth.tar");
    fs::copy_file("testdata/corrupt/crc_data.pt", dir_ / "runs/bad.pt");
    fs::copy_file("README.md", dir_ / "runs/notes.md");
    fs::create_symlink("model.pth.tar", dir_ / "runs/a/z_link.pth.tar");
  }
  test::ShellOutcome run(const std::string& args) {
    return run_shell(
        "cd '" + dir_.path() + "'; '" + test::kProgram + "' " + args);
  }
  const test::ScratchDir dir_;
};

TEST_F(SeveralFiles, ScanLooksIntoAllMembersOfATar) {
  std::filesystem::copy_file("testdata/hostile/call.pt", dir_ / "call.pt");
  const auto packed = run_shell(
      "cd '" + dir_.path() +
      "' && tar cf zip.tar runs/a call.pt && tar cf nested.tar zip.tar");
  ASSERT_EQ(packed.status, 0) << packed.err;
  const auto alone = run("ckpt scan call.pt");
  const auto inside = run("ckpt scan zip.tar");
  EXPECT_EQ(inside.status, alone.status) << inside.out;
  EXPECT_THAT(inside.out, HasSubstr("call.pt"));
  EXPECT_THAT(inside.out, Not(HasSubstr("clean")));
  EXPECT_THAT(run("ckpt scan nested.tar").out, Not(HasSubstr("clean")));
}

TEST_F(SeveralFiles, VerifyGoesOnAndGivesTheWorstStatus) {
  const auto all = run("ckpt verify runs none.pt");
  EXPECT_EQ(all.status, 4);
  EXPECT_THAT(
      all.out,
      HasSubstr("sound       runs/a/model.pth.tar  (7 records"));
  EXPECT_THAT(all.out, HasSubstr("damaged     runs/bad.pt"));
  EXPECT_THAT(all.out, HasSubstr("unreadable  none.pt"));
  EXPECT_THAT(all.out, Not(HasSubstr("z_link")));
  EXPECT_THAT(all.out, Not(HasSubstr("notes.md")));
  EXPECT_THAT(all.err, HasSubstr("2 of 3 files are not sound"));
  EXPECT_EQ(run("ckpt verify runs").status, 3);
  EXPECT_EQ(run("ckpt verify runs/a").status, 0);
}

TEST_F(SeveralFiles, DigestPrintsAsSha256sum) {
  const auto all = run("ckpt digest runs/a/model.pth.tar none.pt");
  EXPECT_EQ(all.status, 4);
  EXPECT_THAT(all.out, testing::EndsWith("  runs/a/model.pth.tar\n"));
  EXPECT_THAT(all.err, HasSubstr("none.pt"));
}

TEST_F(SeveralFiles, JsonHoldsAList) {
  const json answer = json::parse(run("ckpt verify --json runs").out);
  EXPECT_EQ(answer["schema"], "lockstep.ckpt.verify.files/1");
  EXPECT_EQ(answer["ok"], false);
  const json files = answer["result"]["files"];
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0]["path"], "runs/a/model.pth.tar");
  EXPECT_EQ(files[0]["result"]["records"], 7);
  EXPECT_EQ(files[1]["error"]["code"], "E_CRC");
  // One file is answered for alone, in a folder or not.
  const json one = json::parse(run("ckpt verify --json runs/bad.pt").out);
  EXPECT_EQ(one["schema"], "lockstep.ckpt.verify/1");
}

TEST_F(SeveralFiles, ScanGoesOnToo) {
  const auto all = run("ckpt scan none.pt runs/a/model.pth.tar");
  EXPECT_EQ(all.status, 3);
  EXPECT_THAT(all.out, HasSubstr("unreadable  none.pt"));
  EXPECT_THAT(all.out, HasSubstr("clean       runs/a/model.pth.tar"));
  EXPECT_THAT(all.out, HasSubstr("1 clean, 1 unreadable"));
}

TEST_F(SeveralFiles, AFolderWithoutCheckpointsIsAnError) {
  std::filesystem::create_directory(dir_ / "empty");
  const auto none = run("ckpt verify empty");
  EXPECT_EQ(none.status, 4);
  EXPECT_THAT(none.err, HasSubstr("E_NO_CHECKPOINT"));
}

} // namespace
} // namespace lockstep
