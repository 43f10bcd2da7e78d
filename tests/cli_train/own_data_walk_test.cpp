// SPDX-License-Identifier: BSD-3-Clause
//
// The commands of docs/own_data.md, typed as they stand there.
#include <filesystem>
#include <regex>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "tests/cli_train/trained_run.h"
#include "tests/support/shell.h"

namespace lockstep::cli_train {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A section of the document, without its title.
std::string section(const std::string& document, const std::string& title) {
  const std::string text =
      read_text(real_fs(), LOCKSTEP_SOURCE_DIR "/docs/" + document).value();
  const auto begin = text.find("\n## " + title);
  EXPECT_NE(begin, std::string::npos) << title;
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

// Lines in code blocks that begin with the program's name.
std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> commands;
  bool is_code = false;
  for (const std::string& line : split(text, '\n')) {
    is_code = line.starts_with("```") ? !is_code : is_code;
    if (is_code && line.starts_with("lockstep ")) {
      commands.push_back(line);
    }
  }
  return commands;
}

// Words of each line, with one space between.
std::vector<std::string> lines_of_words(const std::string& text) {
  return split(std::regex_replace(text, std::regex("[ ]+"), " "), '\n');
}

TEST(OwnDataWalk, PicturesOfClasses) {
  const std::string walk = section("own_data.md", "Classes");
  const std::vector<std::string> commands = commands_in(walk);
  ASSERT_THAT(commands, SizeIs(3)) << "train, eval, predict";
  EXPECT_EQ(commands_in(section("own_data.zh.md", "\u5206\u7c7b")), commands);
  const test::ScratchDir dir;
  for (int i = 0; i < 40; ++i) {
    test::write_picture(format("{}/{}.png", dir / "animals/cat", i), 0, i);
    test::write_picture(format("{}/{}.png", dir / "animals/dog", i), 1, i);
    test::write_picture(format("{}/{}.png", dir / "animals/\u732b", i), 2, i);
  }
  test::write_picture(dir / "photos/1.jpg", 1, 200);
  test::write_picture(dir / "more/x.jpg", 2, 201);
  const std::string there = format(
      "cd '{}'; export PATH='" LOCKSTEP_BINARY_DIR "/bin':$PATH; ",
      dir.path());
  std::vector<std::string> printed;
  for (const std::string& command : commands) {
    const auto outcome = test::run_shell(there + command);
    ASSERT_EQ(outcome.status, 0) << command << "\n" << outcome.err;
    printed.push_back(outcome.out);
  }
  const std::vector<std::string> shown = lines_of_words(walk);
  const std::vector<std::string> judged = lines_of_words(printed[1]);
  EXPECT_THAT(
      printed[1],
      HasSubstr("24 samples of folder animals (test part)"));
  for (const std::string heading :
       {"per_class f1 precision recall predicted actual auroc",
        "rows: targets, columns: predictions",
        "confusion cat dog \u732b"}) {
    EXPECT_THAT(judged, Contains(heading));
    EXPECT_THAT(shown, Contains(heading));
  }
  const auto rows =
      split(read_text(real_fs(), dir / "names.csv").value(), '\n');
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_THAT(shown, Contains(rows[0]));
  EXPECT_THAT(rows[1], HasSubstr("photos/1.jpg,dog,"));
  EXPECT_THAT(rows[2], HasSubstr("more/x.jpg,\u732b,"));
  for (const char* name :
       {"confusion.svg", "worst.png", "worst.csv", "metrics.json"}) {
    EXPECT_TRUE(std::filesystem::exists(dir / format("report/{}", name)))
        << name;
  }
}

} // namespace
} // namespace lockstep::cli_train
