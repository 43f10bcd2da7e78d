// SPDX-License-Identifier: BSD-3-Clause
//
// What --dry-run says holds: on every sound file of testdata, each command that
// writes ends with the status and the errors that it has without the flag.
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// {} is the input, [] the output.
constexpr std::array<std::string_view, 17> kCommands{
    "convert {} []",
    "convert {} [] --to safetensors",
    "convert {} [] --to npz --all",
    "convert {} [] --to dcp",
    "convert {} [] --to pt-legacy",
    "convert {} [] --to libtorch",
    "strip {} -o []",
    "prefix {} --prefix a. -o []",
    "rename {} s/w/v/ -o []",
    "drop {} w -o []",
    "pick {} w -o []",
    "convert {} [].safetensors --all --shard 8B",
    "merge {} testdata/valid/tiny.pt [] --replace",
    "average {} {} -o []",
    "match {} testdata/valid/tiny.pt -o []",
    "extract-model {} []",
    "repair {} []"};

void replace_all(
    std::string& text,
    std::string_view from,
    std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::vector<std::string> sound_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator("testdata/valid")) {
    files.push_back(entry.path().string());
  }
  return files;
}

class DryRun : public testing::TestWithParam<std::string_view> {};

TEST_P(DryRun, SaysWhatTheRunSays) {
  int written = 0;
  for (const std::string& file : sound_files()) {
    const test::ScratchDir dir;
    std::string command(GetParam());
    replace_all(command, "{}", format("'{}'", file));
    replace_all(command, "[]", format("'{}'", dir / "out"));
    const auto run = [&command](std::string_view flag) {
      return test::run_shell(
          format("'{}' ckpt {} {} >/dev/null", test::kProgram, command, flag));
    };
    const auto said = run("--dry-run");
    EXPECT_TRUE(fs::is_empty(dir.path())) << command;
    const auto done = run("");
    EXPECT_EQ(said.status, done.status) << command << "\n" << done.err;
    EXPECT_EQ(said.err, done.err) << command;
    written += done.status == 0 ? 1 : 0;
  }
  EXPECT_GT(written, 0);
}

// What only the writer refuses.
TEST(DryRunOf, RepairRefusesTheNameOfTheRun) {
  const test::ScratchDir dir;
  for (const char* flag : {"--dry-run", ""}) {
    const auto outcome = test::run_shell(format(
        "cd '{}' && '{}' ckpt repair '{}/testdata/valid/tiny.pt' ..pt {}",
        dir.path(),
        test::kProgram,
        LOCKSTEP_SOURCE_DIR,
        flag));
    EXPECT_EQ(outcome.status, 2) << flag;
    EXPECT_THAT(outcome.err, testing::HasSubstr("top folder")) << flag;
  }
}

// Beside errors: the name of the file that stands for several.
TEST(DryRunOf, ShardsNamesTheirIndex) {
  const test::ScratchDir dir;
  for (const char* flag : {"--dry-run", ""}) {
    const auto outcome = test::run_shell(format(
        "'{}' ckpt convert testdata/valid/dataparallel.pt '{}' --shard 50B {}",
        test::kProgram,
        dir / "w.safetensors",
        flag));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        outcome.out,
        testing::HasSubstr("w.safetensors.index.json: 9 tensors"));
  }
}

TEST(DryRunOf, AFolderRefusesALinkThatLeadsNowhere) {
  const test::ScratchDir dir;
  fs::create_symlink("nowhere", dir / "link");
  for (const char* flag : {"--dry-run", ""}) {
    const auto outcome = test::run_shell(format(
        "'{}' ckpt convert testdata/valid/tiny.pt '{}' --to dcp {}",
        test::kProgram,
        dir / "link",
        flag));
    EXPECT_EQ(outcome.status, 2) << flag;
    EXPECT_THAT(outcome.err, testing::HasSubstr("E_EXISTS")) << flag;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands,
    DryRun,
    testing::ValuesIn(kCommands),
    [](const auto& row) { return std::to_string(row.index); });

} // namespace
} // namespace lockstep
