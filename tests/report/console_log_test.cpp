// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/console_log.h"

#include <gmock/gmock.h>

#include "tests/report/virtual_terminal.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConsoleLog, ShowsLevelsAndKeepsAFile) {
  MemoryFs fs;
  VirtualTerminal terminal;
  Console console(terminal);
  const auto log = ConsoleLog::open(console, {.file = "log.txt"}, fs).value();
  log->write(LogLevel::kDebug, "hidden");
  log->write(LogLevel::kInfo, "Epoch: [0] Total time: 0:01:04");
  log->write(LogLevel::kWarning, "disk is nearly full");
  log->write(LogLevel::kError, "stop");
  EXPECT_THAT(
      terminal.lines(),
      ElementsAre(
          "Epoch: [0] Total time: 0:01:04",
          "warning: disk is nearly full",
          "error: stop",
          ""));
  EXPECT_EQ(
      read_text(fs, "log.txt").value(),
      "Epoch: [0] Total time: 0:01:04\nwarning: disk is nearly full\n"
      "error: stop\n");
}

TEST(ConsoleLog, AQuietConsoleStillKeepsTheFile) {
  MemoryFs fs;
  VirtualTerminal terminal;
  Console console(terminal);
  const auto log = ConsoleLog::open(
                       console,
                       {.file = "log.txt", .console_level = LogLevel::kError},
                       fs)
                       .value();
  log->write(LogLevel::kInfo, "one");
  EXPECT_EQ(terminal.writes(), 0);
  EXPECT_EQ(read_text(fs, "log.txt").value(), "one\n");
}

TEST(ConsoleLog, ColoursOnTheScreenOnly) {
  MemoryFs fs;
  VirtualTerminal terminal(
      80,
      {.is_terminal = true, .colour = true, .animated = true});
  Console console(terminal);
  const auto log = ConsoleLog::open(console, {.file = "log.txt"}, fs).value();
  log->write(LogLevel::kWarning, "x");
  EXPECT_THAT(terminal.lines(), ElementsAre("warning: x", ""));
  EXPECT_EQ(terminal.strange(), "");
  EXPECT_EQ(read_text(fs, "log.txt").value(), "warning: x\n");
}

TEST(ConsoleLog, SaysOnceThatTheFileIsFullAndGoesOn) {
  MemoryFs memory;
  FaultFs fs(memory, {.byte_budget = 4});
  VirtualTerminal terminal(200);
  Console console(terminal);
  const auto log = ConsoleLog::open(console, {.file = "log.txt"}, fs).value();
  for (const char* text : {"one", "two", "three"}) {
    log->write(LogLevel::kInfo, text);
  }
  EXPECT_THAT(
      terminal.lines(),
      ElementsAre(
          "one",
          "two",
          HasSubstr("warning: no more lines in the log file: [fs.write] No "
                    "space left on device"),
          "three",
          ""));
}

TEST(ConsoleLog, ReportsAFileThatCannotBeOpened) {
  MemoryFs fs;
  VirtualTerminal terminal;
  Console console(terminal);
  const auto log = ConsoleLog::open(console, {.file = "none/log.txt"}, fs);
  EXPECT_EQ(log.error().code, ErrorCode::kNotFound);
}

} // namespace
} // namespace lockstep::report
