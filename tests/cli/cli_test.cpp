// SPDX-License-Identifier: BSD-3-Clause
//
// The program `lockstep` from the outside. Each file of tests/cli/golden is a
// session: lines "$ lockstep ..." with standard output, standard error and
// exit status below. Set LOCKSTEP_UPDATE_GOLDEN=1 to write them anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using test::file_text;
using test::run_shell;
using Outcome = test::ShellOutcome;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

Outcome lockstep_run(const std::string& args) {
  return run_shell("'" + test::kProgram + "' " + args);
}

// The compiler's version is not a promise, nor is LibTorch.
std::string stable(std::string text) {
  // It may go over the end of a line.
  constexpr std::string_view kNoTorch = " (not";
  constexpr std::string_view kInstalled = "installed)";
  for (std::size_t at = 0; (at = text.find(kNoTorch, at)) != text.npos; ++at) {
    const std::size_t word =
        text.find_first_not_of(" \n", at + kNoTorch.size());
    if (word != text.npos && text.compare(word, 10, kInstalled) == 0) {
      text.erase(at, word + kInstalled.size() - at);
    }
  }
  const std::size_t begin = text.find("compiler  ");
  if (begin != std::string::npos) {
    const std::size_t end = text.find('\n', begin);
    text.replace(begin, end - begin, "compiler  ...");
  }
  return text;
}

std::string session_of(const std::string& args) {
  const Outcome outcome = lockstep_run(args);
  std::string text = "$ lockstep " + args + "\n" + stable(outcome.out);
  for (const std::string& line : split(outcome.err, '\n')) {
    text += line.empty() ? "" : "stderr: " + line + "\n";
  }
  return text + format("exit {}\n", outcome.status);
}

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/cli/golden")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, SessionIsUnchanged) {
  const std::string expected = file_text(GetParam());
  std::string actual;
  for (const std::string& line : split(expected, '\n')) {
    constexpr std::string_view kPrompt = "$ lockstep ";
    if (line.starts_with(kPrompt)) {
      actual += session_of(line.substr(kPrompt.size()));
    }
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  if (std::getenv("LOCKSTEP_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GetParam()) << actual;
    return;
  }
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Sessions,
    Golden,
    testing::ValuesIn(golden_files()),
    [](const auto& param) {
      return std::filesystem::path(param.param).stem().string();
    });

TEST(Program, LinksNeitherTorchNorTheStandardLibrary) {
  const Outcome outcome = run_shell("ldd '" + test::kProgram + "'");
  ASSERT_EQ(outcome.status, 0);
  // Static where the C library can be, and not for sanitizers.
  EXPECT_THAT(
      outcome.out,
      AnyOf(HasSubstr("statically linked"), HasSubstr("libc.so")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("torch")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("c10")));
  if (!test::kIsSanitized) {
    EXPECT_THAT(outcome.out, Not(HasSubstr("libstdc++")));
  }
}

TEST(Program, ReadsStandardInput) {
  const Outcome piped =
      run_shell("'" + test::kProgram + "' ckpt ls - < testdata/valid/tiny.pt");
  EXPECT_EQ(piped.status, 0);
  EXPECT_EQ(piped.out, lockstep_run("ckpt ls testdata/valid/tiny.pt").out);
}

TEST(Program, HandsTrainingOverToTheProgramBesideIt) {
  const test::ScratchDir folder;
  const std::string train = folder / "lockstep-train";
  std::ofstream(train) << "#!/bin/sh\necho \"$@\"\nexit 7\n";
  std::filesystem::permissions(train, std::filesystem::perms::owner_all);
  std::filesystem::copy_file(test::kProgram, folder / "lockstep");
  const Outcome beside =
      run_shell("'" + folder.path() + "/lockstep' train --lr 0.1");
  EXPECT_EQ(beside.status, 7);
  EXPECT_EQ(beside.out, "train --lr 0.1\n");
}

TEST(Program, SaysWhatToDoWithoutTheTrainingProgram) {
  const test::ScratchDir folder;
  std::filesystem::copy_file(test::kProgram, folder / "lockstep");
  const Outcome alone = run_shell(
      "PATH=/nowhere '" + folder.path() + "/lockstep' train --lr 0.1");
  EXPECT_EQ(alone.status, 5);
  EXPECT_THAT(alone.err, HasSubstr("lockstep-train"));
  EXPECT_THAT(alone.err, HasSubstr("Hint: "));
}

TEST(Program, NamesFoundInAFileStayOffTheTerminal) {
  const Outcome outcome = lockstep_run(
      "ckpt show testdata/valid/tiny.pt "
      "\"$(printf 'x\\033[31m')\"");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("x\\x1b[31m"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
}

} // namespace
} // namespace lockstep
