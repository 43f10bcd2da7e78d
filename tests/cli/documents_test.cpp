// SPDX-License-Identifier: BSD-3-Clause
//
// docs/errors.md and docs/error_details.md, which `lockstep explain` prints,
// against the sources and the program.
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using test::file_text;
using test::run_shell;
using testing::Contains;

using Names = std::set<std::string>;

// What the first group of `pattern` matches.
Names all_matches(const std::string& text, const std::string& pattern) {
  Names found;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end;
       ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

// Codes in the literals of the sources: "E_CRC", "W_LAYOUT: text".
Names codes_in_sources() {
  Names codes;
  for (const char* folder : {"lockstep", "cli", "cli_train"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder)) {
      std::string text = file_text(entry.path().string());
      text = std::regex_replace(text, std::regex("//[^\n]*"), "");
      codes.merge(all_matches(text, R"re("([EW]_[A-Z0-9_]{2,})[":])re"));
    }
  }
  return codes;
}

std::string documents() {
  return file_text("docs/errors.md") + file_text("docs/error_details.md");
}

TEST(Explain, KnowsTheCodesOfTheSourcesAndNoOthers) {
  const Names documented =
      all_matches(file_text("docs/error_details.md"), "## ([EW]_[A-Z0-9_]+)");
  EXPECT_GT(documented.size(), 40U);
  EXPECT_EQ(codes_in_sources(), documented);
}

TEST(Explain, ListsEveryCode) {
  const auto list = run_shell("'" + test::kProgram + "' explain");
  const Names listed = all_matches(list.out, "(?:^|\n)([A-Za-z_0-9]+)  ");
  EXPECT_EQ(listed, all_matches(documents(), "\n## ([A-Za-z_0-9]+)"));
  for (const std::string& line : split(list.out, '\n')) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

// Command -> flags, as completion knows them: "ckpt ls", "train".
std::map<std::string, Names> flags_of_commands() {
  const std::string script =
      run_shell("'" + test::kProgram + "' completion bash").out;
  std::map<std::string, Names> flags;
  const std::regex row("'([a-z -]+)'\\) flags='([^']*)'");
  for (std::sregex_iterator at(script.begin(), script.end(), row), end;
       at != end;
       ++at) {
    const auto words = split(std::string((*at)[2]), ' ');
    flags[(*at)[1]] = Names(words.begin(), words.end());
  }
  return flags;
}

// "ckpt ls FILE" -> "ckpt ls"; a file after ckpt is an inspection.
std::string command_of(const std::string& line) {
  const auto words = split(line, ' ');
  if (words[0] != "ckpt") {
    return words[0];
  }
  const bool is_word =
      words.size() > 1 && std::regex_match(words[1], std::regex("[a-z-]+"));
  return is_word ? "ckpt " + words[1] : "ckpt inspect";
}

TEST(Documents, NameCommandsAndFlagsThatExist) {
  const auto known = flags_of_commands();
  ASSERT_GT(known.size(), 20U);
  Names every{"--help", "--version"};
  for (const auto& [command, flags] : known) {
    every.insert(flags.begin(), flags.end());
  }
  const std::string text =
      std::regex_replace(documents(), std::regex("\n"), " ");
  const Names flags = all_matches(text, "(--[a-z][a-z-]*)");
  EXPECT_GT(flags.size(), 10U);
  for (const std::string& flag : flags) {
    EXPECT_THAT(every, Contains(flag));
  }
  const Names lines = all_matches(text, "`lockstep ((?!--)[^`]+)`");
  EXPECT_GT(lines.size(), 10U);
  for (const std::string& line : lines) {
    const auto found = known.find(command_of(line));
    ASSERT_NE(found, known.end()) << line;
    for (const std::string& flag : all_matches(line, "(--[a-z][a-z-]*)")) {
      EXPECT_THAT(found->second, Contains(flag)) << line;
    }
  }
}

} // namespace
} // namespace lockstep
