// SPDX-License-Identifier: BSD-3-Clause
//
// The examples from the outside. Each file of examples/golden is a session of
// one example: lines "$ [VARIABLE=value...] name [arguments]" with standard
// output, standard error and exit status below. Set LOCKSTEP_UPDATE_GOLDEN=1 to
// write them anew. The blocks of the pages on DataParallel come from the
// examples.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using test::file_text;

const std::string kPrograms = LOCKSTEP_BINARY_DIR "/bin/examples";

// Runs in an empty folder: an example may leave files. Of the variables that
// devices depend on only those of the line count.
std::string session_of(const std::string& line) {
  const test::ScratchDir folder;
  const test::ShellOutcome outcome = test::run_shell(
      "cd '" + folder.path() + "' && unset LOCKSTEP_SIM_DEVICES " +
      "LOCKSTEP_VISIBLE_DEVICES LOCKSTEP_PLUGIN_PATH && PATH='" + kPrograms +
      "':$PATH && " + line);
  std::string text = "$ " + line + "\n" + outcome.out;
  for (const std::string& error : split(outcome.err, '\n')) {
    text += error.empty() ? "" : "stderr: " + error + "\n";
  }
  return text + format("exit {}\n", outcome.status);
}

std::set<std::string> stems_of(const char* folder, const char* extension) {
  std::set<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) {
      stems.insert(entry.path().stem().string());
    }
  }
  return stems;
}

class Example : public testing::TestWithParam<std::string> {};

TEST_P(Example, PrintsWhatItPrinted) {
  const std::string path = "examples/golden/" + GetParam() + ".txt";
  const std::string expected = file_text(path);
  std::string actual;
  for (const std::string& line : split(expected, '\n')) {
    if (line.starts_with("$ ")) {
      actual += session_of(line.substr(2));
    }
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  if (std::getenv("LOCKSTEP_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << actual;
    return;
  }
  EXPECT_EQ(actual, expected);
  EXPECT_NE(actual, "") << "no line \"$ " << GetParam() << "\"";
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Example,
    testing::ValuesIn(stems_of("examples", ".cpp")),
    [](const auto& param) { return param.param; });

TEST(Examples, EverySessionBelongsToOne) {
  EXPECT_EQ(stems_of("examples/golden", ".txt"), stems_of("examples", ".cpp"));
}

} // namespace
} // namespace lockstep
