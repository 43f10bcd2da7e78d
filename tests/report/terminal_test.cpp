// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::report {
namespace {

Environment with(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::optional(found->second);
  };
}

TEST(TerminalTraits, ShowsEverythingOnAUtf8Terminal) {
  EXPECT_EQ(
      decide_traits(true, with({{"TERM", "xterm"}, {"LANG", "de_DE.UTF-8"}})),
      (TerminalTraits{
          .is_terminal = true,
          .colour = true,
          .animated = true,
          .unicode = true}));
}

TEST(TerminalTraits, NoColorDumbAndCiTurnDrawingOff) {
  using Variable = std::pair<std::string, std::string>;
  for (const Variable& variable :
       {Variable("NO_COLOR", "1"),
        Variable("TERM", "dumb"),
        Variable("CI", "true")}) {
    EXPECT_EQ(
        decide_traits(true, with({{variable.first, variable.second}})),
        (TerminalTraits{.is_terminal = true}))
        << variable.first;
  }
  for (const Variable& variable :
       {Variable("NO_COLOR", ""),
        Variable("CI", "false"),
        Variable("TERM", "xterm")}) {
    EXPECT_TRUE(
        decide_traits(true, with({{variable.first, variable.second}})).animated)
        << variable.first;
  }
}

TEST(TerminalTraits, APipeIsNeitherColouredNorAnimated) {
  EXPECT_EQ(decide_traits(false, with({})), TerminalTraits{});
}

TEST(TerminalTraits, TheFirstLocaleVariableThatIsSetDecides) {
  EXPECT_FALSE(decide_traits(true, with({{"LC_ALL", "C"}, {"LANG", "C.UTF-8"}}))
                   .unicode);
  EXPECT_TRUE(
      decide_traits(true, with({{"LC_ALL", ""}, {"LC_CTYPE", "en_GB.utf8"}}))
          .unicode);
}

TEST(DescriptorScreen, WritesToAFileAndIsNotATerminal) {
  const test::ScratchDir dir;
  const std::string path = dir / "out";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(descriptor, 0);
  DescriptorScreen screen(descriptor);
  EXPECT_FALSE(screen.traits().is_terminal);
  EXPECT_EQ(screen.width(), 80);
  screen.write("text");
  ::close(descriptor);
  EXPECT_EQ(read_text(real_fs(), path).value(), "text");
  screen.write("a closed descriptor is no reason to stop");
}

} // namespace
} // namespace lockstep::report
