// SPDX-License-Identifier: BSD-3-Clause
//
// The documents as a whole: the index names every page, links lead somewhere,
// and the lengths of programs are what the programs have.
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
using testing::HasSubstr;

const fs::path kSource = LOCKSTEP_SOURCE_DIR;

std::vector<fs::path> pages_below(const fs::path& folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".md") {
      pages.push_back(entry.path());
    }
  }
  return pages;
}

std::vector<fs::path> all_pages() {
  std::vector<fs::path> pages = pages_below(kSource / "docs");
  for (const auto& entry : fs::directory_iterator(kSource)) {
    if (entry.path().extension() == ".md") {
      pages.push_back(entry.path());
    }
  }
  return pages;
}

// Without what stands in backticks, or between fences of three.
std::string without_code(const std::string& text) {
  std::string rest;
  bool is_code = false;
  for (const char c : text) {
    is_code = is_code != (c == '`');
    rest += is_code ? '`' : c;
  }
  return rest;
}

// What stands between "](" and ")", without what follows a '#'.
std::vector<std::string> link_targets(const std::string& page) {
  const std::string text = without_code(page);
  std::vector<std::string> targets;
  for (auto at = text.find("]("); at != std::string::npos;
       at = text.find("](", at)) {
    at += 2;
    const std::string target = text.substr(at, text.find(')', at) - at);
    targets.push_back(target.substr(0, target.find('#')));
  }
  return targets;
}

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

TEST(Documents, TheIndexNamesEveryPage) {
  const std::string index = file_text(kSource / "docs/README.md");
  for (const fs::path& page : pages_below(kSource / "docs")) {
    if (page.filename() != "README.md") {
      const fs::path name = fs::relative(page, kSource / "docs");
      EXPECT_THAT(index, HasSubstr("](" + name.string() + ")"));
    }
  }
}

TEST(Documents, LinksLeadSomewhere) {
  int links = 0;
  for (const fs::path& page : all_pages()) {
    for (const std::string& target : link_targets(file_text(page))) {
      if (!target.empty() && target.find("://") == std::string::npos) {
        ++links;
        EXPECT_TRUE(fs::exists(page.parent_path() / target))
            << page << " leads to " << target;
      }
    }
  }
  EXPECT_GT(links, 50);
}

} // namespace
} // namespace lockstep
