// SPDX-License-Identifier: BSD-3-Clause
//
// Every example of every --help, run by bash in a folder that has the files
// which the examples name.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/commands.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using test::run_shell;
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const std::string kPath =
    "export OMP_NUM_THREADS=1 PATH='" LOCKSTEP_BINARY_DIR "/bin':$PATH; ";

// What the examples read, made of testdata.
constexpr const char* kMakeFiles = R"sh(
set -e
V=$SOURCE/testdata/valid
lockstep ckpt rename $V/training.pth.tar 's/^2\./fc./' -o checkpoint.pth.tar
lockstep ckpt pick checkpoint.pth.tar state_dict -o model.pt
lockstep ckpt pick model.pt fc -o head.pt
cp model.pt other.pt
lockstep ckpt drop model.pt fc -o backbone.pt
lockstep ckpt convert model.pt model.safetensors
lockstep ckpt prefix model.pt --prefix module. -o parallel.pt
mkdir -p runs/first runs/second
printf 'model: mlp\nepochs: 2\nlr: 0.1\n' > runs/first/args.yaml
printf 'model: mlp\nepochs: 2\nlr: 0.2\n' > runs/second/args.yaml
cp $V/whole_model.pt whole.pt
cp $V/tar_whole_model.pth whole2017.pth
cp $SOURCE/testdata/corrupt/crc_data.pt damaged.pt
printf '#!/bin/sh\nexit 0\n' > train
chmod +x train
)sh";

// Lines of a section of a help text: indented by two spaces.
std::vector<std::string> section_of(
    const std::string& help,
    const std::string& title) {
  std::vector<std::string> lines;
  bool is_inside = false;
  for (const std::string& line : split(help, '\n')) {
    if (is_inside && line.empty()) {
      break;
    }
    if (is_inside) {
      lines.push_back(line.substr(2));
    }
    is_inside |= line == title + ":";
  }
  return lines;
}

std::string help_of(const std::string& command) {
  return run_shell(kPath + "lockstep " + command + " --help").out;
}

// "ckpt ls", "explain", ...: all that the help lists and this program does.
std::vector<std::string> all_commands() {
  std::vector<std::string> names;
  for (const std::string group : {"", "ckpt "}) {
    for (const std::string& row : section_of(help_of(group), "Commands")) {
      if (row.starts_with(' ')) {
        continue; // the rest of the line above
      }
      const std::string name = group + row.substr(0, row.find(' '));
      const bool needs_torch = std::ranges::any_of(
          train::kTrainCommands,
          [&](const train::TrainCommand& each) { return each.name == name; });
      if (name != "ckpt" && !needs_torch) {
        names.push_back(name);
      }
    }
  }
  return names;
}

std::string without_dot(std::string name) {
  std::ranges::replace(name, ' ', '_');
  std::ranges::replace(name, '-', '_');
  return name;
}

class Examples : public testing::TestWithParam<std::string> {};

TEST_P(Examples, UseTheCommandAndWork) {
  const std::string& name = GetParam();
  const auto examples = section_of(help_of(name), "Examples");
  ASSERT_THAT(examples, SizeIs(2));
  for (const std::string& example : examples) {
    const bool is_short = example.starts_with("lockstep ckpt checkpoint");
    EXPECT_TRUE(is_short || example.starts_with("lockstep " + name)) << example;
    const test::ScratchDir folder;
    const std::string there = kPath + "cd '" + folder.path() +
                              "'; SOURCE='" LOCKSTEP_SOURCE_DIR "'; ";
    const auto made = run_shell(there + kMakeFiles);
    ASSERT_EQ(made.status, 0) << made.err;
    const auto outcome = run_shell(there + example);
    // 1: what was looked for is there (a difference, a lost tensor).
    EXPECT_THAT(outcome.status, AnyOf(Eq(0), Eq(1))) << outcome.err;
    EXPECT_EQ(outcome.err, "") << example;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands,
    Examples,
    testing::ValuesIn(all_commands()),
    [](const auto& param) { return without_dot(param.param); });

TEST(Help, SaysWhatEachArgumentIsCalled) {
  for (const std::string& name : all_commands()) {
    const std::string help = help_of(name);
    const std::string same = format("{}lockstep help {}", kPath, name);
    for (const char* jargon : {"TEXT", "UINT", "FLOAT", "REQUIRED", "VALUE"}) {
      EXPECT_THAT(help, Not(HasSubstr(jargon))) << name;
    }
    EXPECT_THAT(help, HasSubstr("Usage: lockstep " + name)) << name;
    if (name != "run") { // what is printed is the program's affair
      EXPECT_THAT(help, HasSubstr("--color WHEN")) << name;
    }
    for (const std::string& line : split(help, '\n')) {
      EXPECT_LE(line.size(), 80U) << name;
    }
    EXPECT_EQ(run_shell(same).out, help);
  }
}

TEST(Help, SaysThatTrainingIsNotInstalled) {
  const test::ScratchDir folder;
  std::filesystem::copy_file(test::kProgram, folder / "lockstep");
  const auto alone =
      run_shell("PATH=/nowhere '" + folder.path() + "/lockstep' --help");
  EXPECT_THAT(alone.out, HasSubstr("(not installed)"));
}

} // namespace
} // namespace lockstep
