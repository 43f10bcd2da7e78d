// SPDX-License-Identifier: BSD-3-Clause
//
// A file on standard input is what it is by its name, for each command that
// writes.
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

// The input stands for {}; the new file is called out.
constexpr std::array<std::string_view, 11> kReaders{
    "convert {} out",
    "convert {} out --to pt-legacy",
    "convert {} out --to safetensors --key state_dict",
    "prefix {} --prefix a. -o out",
    "rename {} s/0/9/ -o out",
    "pick {} state_dict -o out",
    "drop {} optimizer -o out",
    "average {} in.pt -o out",
    "average in.pt {} -o out",
    "match in.pt {} -o out",
    "merge in.pt {} out --replace"};

class StandardInput : public testing::TestWithParam<std::string_view> {};

TEST_P(StandardInput, IsReadLikeTheFile) {
  for (const char* file : {"training.pth.tar", "legacy_training.pth.tar"}) {
    const test::ScratchDir dir;
    std::filesystem::copy_file(
        format("testdata/valid/{}", file),
        dir / "in.pt");
    const auto run = [&dir](std::string_view input) {
      std::string command(GetParam());
      command.replace(command.find("{}"), 2, input);
      return test::run_shell(format(
          "cd '{}' && rm -f out && '{}' ckpt {} <in.pt",
          dir.path(),
          test::kProgram,
          command));
    };
    const auto named = run("in.pt");
    const std::string wanted = test::file_text(dir / "out");
    const auto piped = run("-");
    EXPECT_EQ(piped.status, named.status) << file << "\n" << piped.err;
    EXPECT_EQ(test::file_text(dir / "out"), wanted) << file;
    EXPECT_EQ(wanted.empty(), named.status > 1) << named.err;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands,
    StandardInput,
    testing::ValuesIn(kReaders),
    [](const auto& row) { return std::to_string(row.index); });

} // namespace
} // namespace lockstep
