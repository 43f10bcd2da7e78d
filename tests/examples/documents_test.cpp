// SPDX-License-Identifier: BSD-3-Clause
//
// The lengths of programs that documents name are what the programs have.
// Links, the index and the menu: scripts/check_pages.py.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::file_text;

const fs::path kSource = LOCKSTEP_SOURCE_DIR;

// Neither empty nor a comment, without the space around them.
std::vector<std::string> code_lines(const fs::path& path) {
  const bool is_python = path.extension() == ".py";
  std::vector<std::string> lines;
  for (const std::string& line : split(file_text(path), '\n')) {
    const std::size_t begin = line.find_first_not_of(' ');
    const std::string code =
        begin == std::string::npos ? "" : line.substr(begin);
    const bool is_comment =
        is_python ? code.starts_with("#") || code.starts_with("\"\"\"")
                  : code.starts_with("//");
    EXPECT_LE(line.size(), 80) << path << ": " << line;
    if (!code.empty() && !is_comment) {
      lines.push_back(code);
    }
  }
  return lines;
}

TEST(Documents, SayHowLongTheProgramsOfTheNotesAre) {
  const fs::path notes = kSource / "examples/notes";
  const std::string page = file_text(kSource / "docs/beside_python.md");
  for (const auto& entry : fs::directory_iterator(notes)) {
    if (entry.path().extension() != ".cpp") {
      continue;
    }
    const std::string stem = entry.path().stem();
    const auto python = code_lines(notes / (stem + ".py"));
    const auto cpp = code_lines(entry.path());
    const auto closing =
        std::ranges::count_if(cpp, [](const std::string& line) {
          return line.find_first_not_of("})];,") == std::string::npos;
        });
    const std::string row =
        format("| [{}](../examples/notes/{}.cpp) |", stem, stem);
    const std::size_t at = page.find(row);
    ASSERT_NE(at, std::string::npos) << row;
    EXPECT_THAT(
        page.substr(at, page.find('\n', at) - at),
        testing::EndsWith(format(
            "| {} | {} | {} |",
            python.size(),
            cpp.size(),
            std::ssize(cpp) - closing)));
  }
}

TEST(Documents, SayHowLongTheScriptsOfTheWalksAre) {
  const fs::path folder = kSource / "examples/python/own_data";
  for (const char* page : {"docs/own_data.md", "docs/own_data.zh.md"}) {
    const std::string text = file_text(kSource / page);
    for (const auto& entry : fs::directory_iterator(folder)) {
      EXPECT_THAT(
          text,
          testing::HasSubstr(format(
              "[{}](../examples/python/own_data/{})",
              code_lines(entry.path()).size(),
              entry.path().filename().string())));
    }
  }
}

} // namespace
} // namespace lockstep
