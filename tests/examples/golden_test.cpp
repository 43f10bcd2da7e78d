// SPDX-License-Identifier: BSD-3-Clause
//
// The examples from the outside. Each file of examples/golden and of
// examples/notes/golden is a session of one example: lines "$
// [VARIABLE=value...] name [arguments]", or with `lockstep run` in front of the
// name, and standard output, standard error and exit status below. Set
// LOCKSTEP_UPDATE_GOLDEN=1 to write them anew. Code that README.md and the
// pages of docs/ show is a part of an example, or of a project in
// examples/projects, whose sessions tests/consumer runs. The commands of
// docs/resume.md are run here, and so is scripts/same_bits.sh.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using test::file_text;
using testing::HasSubstr;

const std::string kPrograms = LOCKSTEP_BINARY_DIR "/bin/examples";

// Runs in an empty folder: an example may leave files. Of the variables that
// devices depend on only those of the line count.
std::string session_of(const std::string& line) {
  const test::ScratchDir folder;
  const test::ShellOutcome outcome = test::run_shell(
      "cd '" + folder.path() + "' && unset LOCKSTEP_SIM_DEVICES " +
      "LOCKSTEP_VISIBLE_DEVICES LOCKSTEP_PLUGIN_PATH && PATH='" + kPrograms +
      "/notes:" + kPrograms +
      ":" LOCKSTEP_BINARY_DIR "/bin':$PATH && TESTDATA='" LOCKSTEP_SOURCE_DIR
      "/testdata' && NOTES='" LOCKSTEP_SOURCE_DIR
      "/examples/notes' && PYTHON='" +
      test::python_program() + "' && " + line);
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

// Without the spaces that lines begin with.
std::string without_indent(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
  }
  return join(lines, "\n");
}

// All files below a folder whose names end so, in one text.
std::string texts_of(const char* folder, std::string_view end) {
  std::string text;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().string().ends_with(end)) {
      text += file_text(entry.path()) + "\n";
    }
  }
  return without_indent(text);
}

// Texts outside and inside of blocks, in turn.
std::vector<std::string> split_by_fence(const std::string& page) {
  constexpr std::string_view kFence = "```";
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= page.size()) {
    const std::size_t end = std::min(page.find(kFence, begin), page.size());
    parts.push_back(page.substr(begin, end - begin));
    begin = end + kFence.size();
  }
  return parts;
}

struct Program {
  std::string folder = {};
  std::string stem = {};
};

std::vector<Program> programs() {
  std::vector<Program> found;
  for (const char* folder : {"examples", "examples/notes"}) {
    for (const std::string& stem : stems_of(folder, ".cpp")) {
      found.push_back({folder, stem});
    }
  }
  return found;
}

class Example : public testing::TestWithParam<Program> {};

TEST_P(Example, PrintsWhatItPrinted) {
  const std::string path =
      GetParam().folder + "/golden/" + GetParam().stem + ".txt";
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
  EXPECT_NE(actual, "") << "no line \"$ " << GetParam().stem << "\"";
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Example,
    testing::ValuesIn(programs()),
    [](const auto& param) {
      const bool is_note = param.param.folder.ends_with("notes");
      return (is_note ? "notes_" : "") + param.param.stem;
    });

TEST(Examples, EverySessionBelongsToOne) {
  EXPECT_EQ(stems_of("examples/golden", ".txt"), stems_of("examples", ".cpp"));
  const auto notes = stems_of("examples/notes", ".cpp");
  EXPECT_EQ(stems_of("examples/notes/golden", ".txt"), notes);
  EXPECT_EQ(stems_of("examples/notes", ".py"), notes);
}

// README.md and the pages below docs.
std::vector<std::string> pages() {
  std::vector<std::string> paths{"README.md"};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator("docs")) {
    if (entry.path().extension() == ".md") {
      paths.push_back(entry.path());
    }
  }
  return paths;
}

TEST(Pages, ShowCodeOfTheExamples) {
  const std::map<std::string, std::string> sources{
      {"cpp", texts_of("examples", ".cpp")},
      {"python", texts_of("examples", ".py")},
      {"cmake", texts_of("examples/projects", "CMakeLists.txt")}};
  std::set<std::string> with_code;
  for (const std::string& page : pages()) {
    const auto parts = split_by_fence(file_text(page));
    for (std::size_t i = 1; i < parts.size(); i += 2) {
      const std::size_t end = parts[i].find('\n');
      const std::string language = parts[i].substr(0, end);
      // python/tests/test_docs.py runs the programs of that page.
      if (language == "python" && page.starts_with("docs/python_reader")) {
        continue;
      }
      if (const auto known = sources.find(language); known != sources.end()) {
        with_code.insert(page);
        EXPECT_THAT(
            known->second,
            HasSubstr(without_indent(parts[i].substr(end + 1))))
            << page;
      }
    }
  }
  EXPECT_THAT(
      with_code,
      testing::IsSupersetOf(
          {"README.md",
           "docs/data_parallel.md",
           "docs/data_parallel.zh.md",
           "docs/resume.md"}));
}

class Page : public testing::TestWithParam<const char*> {};

TEST_P(Page, ShowsWhatTheExamplesPrint) {
  const std::string outputs = texts_of("examples/golden", ".txt");
  const auto parts = split_by_fence(file_text(GetParam()));
  EXPECT_GT(parts.size(), 10U);
  for (std::size_t i = 1; i < parts.size(); i += 2) {
    if (!parts[i].starts_with("cpp\n")) {
      const std::size_t end = parts[i].find('\n') + 1;
      EXPECT_THAT(outputs, HasSubstr(without_indent(parts[i].substr(end))));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    DataParallel,
    Page,
    testing::Values("docs/data_parallel.md", "docs/data_parallel.zh.md"),
    [](const auto& page) { return page.index == 0 ? "English" : "Chinese"; });

/// "$ command" of a page and the lines below it.
struct Command {
  std::string text = {};
  std::vector<std::string> shown = {};
};

// Those of the blocks without a language.
std::vector<Command> commands_of(const std::string& page) {
  std::vector<Command> commands;
  const auto parts = split_by_fence(file_text(page));
  for (std::size_t i = 1; i < parts.size(); i += 2) {
    if (!parts[i].starts_with("\n$ ")) {
      continue;
    }
    for (const std::string& line : split(parts[i], '\n')) {
      if (line.starts_with("$ ")) {
        commands.push_back({.text = line.substr(2)});
      } else if (!line.empty()) {
        commands.back().shown.push_back(line);
      }
    }
  }
  return commands;
}

// One shell for all, in an empty folder; what is shown must be among the lines
// that the command prints, in that order.
TEST(ResumePage, ItsCommandsPrintWhatItShows) {
  const std::string mark = "=== command ===\n";
  const auto commands = commands_of("docs/resume.md");
  ASSERT_GT(commands.size(), 5U);
  const test::ScratchDir folder;
  std::string script = "cd '" + folder.path() +
                       "' && ln -s '" LOCKSTEP_SOURCE_DIR
                       "/examples' . && PATH='" LOCKSTEP_BINARY_DIR "/bin':'" +
                       parent_directory(test::python_program()) +
                       "':$PATH || exit 1\nset -e\nexec 2>&1\n";
  for (const Command& command : commands) {
    script += "echo '" + mark.substr(0, mark.size() - 1) + "'\n" +
              command.text + "\n";
  }
  const test::ShellOutcome outcome = test::run_shell(script);
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  std::string rest = outcome.out;
  for (const Command& command : commands) {
    rest.erase(0, std::min(rest.find(mark), rest.size() - mark.size()));
    rest.erase(0, mark.size());
    std::string_view printed = rest;
    printed = printed.substr(0, printed.find(mark));
    for (const std::string& line : command.shown) {
      const auto at = printed.find(line + "\n");
      ASSERT_NE(at, std::string_view::npos) << command.text << "\n" << rest;
      printed.remove_prefix(at + line.size());
    }
  }
}

TEST(SameBitsScript, FindsNoDifferenceToPython) {
  const test::ShellOutcome outcome = test::run_shell(
      "LOCKSTEP_PROGRAM='" LOCKSTEP_BINARY_DIR "/bin/lockstep' " +
      format("LOCKSTEP_PYTHON='{}' ", test::python_program()) +
      "'" LOCKSTEP_SOURCE_DIR "/scripts/same_bits.sh'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("20 of 20 losses equal"));
  EXPECT_THAT(outcome.out, HasSubstr("equal: 12 tensors"));
}

} // namespace
} // namespace lockstep
