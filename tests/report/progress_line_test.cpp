// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/progress_line.h"

#include <latch>
#include <thread>

#include <gmock/gmock.h>

#include "tests/report/virtual_terminal.h"

namespace lockstep::report {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ProgressLineTest : public ::testing::Test {
 protected:
  void advance(std::chrono::milliseconds by) {
    time_ += by;
  }
  // A line drawn by hand at the fake time.
  ProgressOptions options(Console& console, std::int64_t total = 10) {
    return {
        .total = total,
        .label = "Epoch 1/2",
        .console = &console,
        .now = [this] { return time_; },
        .timer = false};
  }
  Clock::time_point time_ = Clock::time_point(std::chrono::hours(1));
};

TEST_F(ProgressLineTest, OverwritesOneLineAndKeepsTheLastState) {
  VirtualTerminal terminal(100);
  Console console(terminal);
  {
    ProgressLine line(options(console));
    line.tick();
    EXPECT_EQ(terminal.last_line(), "Epoch 1/2  0/10 [>...................]");
    for (int step = 1; step <= 10; ++step) {
      advance(std::chrono::seconds(1));
      line.update({.done = step, .samples = step * 64, .loss = 2.0});
      line.tick();
    }
    line.finish();
  }
  EXPECT_THAT(
      terminal.lines(),
      ElementsAre(
          "Epoch 1/2 10/10 [====================] 0:00:10 64 img/s - loss: "
          "2.0000",
          ""));
  EXPECT_EQ(terminal.strange(), "");
}

TEST_F(ProgressLineTest, WritesOnlyWhenSomethingChanged) {
  VirtualTerminal terminal;
  Console console(terminal);
  ProgressLine line(options(console));
  line.tick();
  line.tick();
  EXPECT_EQ(terminal.writes(), 1);
}

TEST_F(ProgressLineTest, KeepsValuesThatAnUpdateLeavesOut) {
  VirtualTerminal terminal;
  Console console(terminal);
  ProgressLine line(options(console));
  line.update({.done = 1, .loss = 2.5, .accuracy = 0.25});
  line.update({.done = 2, .loss = 1.5});
  line.tick();
  EXPECT_THAT(
      terminal.last_line(),
      EndsWith("- accuracy: 0.2500 - loss: 1.5000"));
}

TEST_F(ProgressLineTest, ALogLineGoesAboveTheBar) {
  VirtualTerminal terminal;
  Console console(terminal);
  ProgressLine line(options(console));
  line.tick();
  console.print("warning: something");
  EXPECT_THAT(
      terminal.lines(),
      ElementsAre(
          "warning: something",
          "Epoch 1/2  0/10 [>...................]"));
  line.update({.done = 1});
  line.tick();
  EXPECT_THAT(terminal.last_line(), StartsWith("Epoch 1/2  1/10"));
}

TEST_F(ProgressLineTest, FollowsTheWidthOfTheWindow) {
  VirtualTerminal terminal(80);
  Console console(terminal);
  ProgressLine line(options(console));
  line.tick();
  terminal.resize(18);
  line.update({.done = 1});
  line.tick();
  EXPECT_THAT(terminal.last_line(), Not(StartsWith("Epoch 1/2  1/10")))
      << "the window may still be dragged";
  advance(std::chrono::milliseconds(300));
  line.tick();
  EXPECT_EQ(terminal.last_line(), "Epoch 1/2  1/10");
  EXPECT_THAT(terminal.lines(), SizeIs(1));
}

TEST_F(ProgressLineTest, NothingStaysOfTheBarThatAResizeBroke) {
  VirtualTerminal terminal(80);
  Console console(terminal);
  console.print("before");
  ProgressLine line(options(console));
  line.update({.done = 1, .loss = 1.0, .accuracy = 0.5});
  line.tick();
  for (const int width : {40, 12, 80, 20}) {
    terminal.resize(width);
    line.update({.done = 10 - width / 10, .loss = 1.0, .accuracy = 0.5});
    line.tick();
    advance(std::chrono::milliseconds(300));
    line.tick();
    EXPECT_THAT(terminal.lines(), ElementsAre("before", HasSubstr("/10")))
        << width;
  }
  terminal.resize(9);
  console.print("after");
  EXPECT_EQ(terminal.lines().at(1), "after");
}

TEST_F(ProgressLineTest, LeavesNothingWhenItIsCleared) {
  VirtualTerminal terminal;
  Console console(terminal);
  console.print("before");
  {
    ProgressLine line(options(console));
    line.update({.done = 3});
    line.tick();
    terminal.write("^C"); // as the terminal does itself
    line.clear();
    line.clear();
    line.tick();
    console.print("stopped");
  }
  EXPECT_THAT(terminal.lines(), ElementsAre("before", "stopped", ""));
}

TEST_F(ProgressLineTest, LeavesAnEmptyLineWhenItIsAbandoned) {
  VirtualTerminal terminal;
  Console console(terminal);
  {
    ProgressLine line(options(console));
    line.update({.done = 3});
    line.tick();
  }
  EXPECT_THAT(terminal.lines(), ElementsAre(HasSubstr(" 3/10"), ""));
}

TEST_F(ProgressLineTest, PrintsPlainLinesInAFile) {
  VirtualTerminal file(80, {});
  Console console(file);
  ProgressLine line(options(console));
  for (int step = 1; step <= 70; ++step) {
    advance(std::chrono::seconds(1));
    line.update({.done = step, .samples = step});
    line.tick();
  }
  line.finish();
  line.finish();
  EXPECT_THAT(
      file.lines(),
      ElementsAre(
          "Epoch 1/2: 30/10 (300 %), eta 0:00:00, 1 img/s",
          "Epoch 1/2: 60/10 (600 %), eta 0:00:00, 1 img/s",
          "Epoch 1/2: 70/10 (700 %), 0:01:10, 1 img/s",
          ""));
}

TEST_F(ProgressLineTest, PrintsNothingWhenItIsOff) {
  VirtualTerminal terminal;
  Console console(terminal);
  ProgressOptions quiet = options(console);
  quiet.style = ProgressStyle::kOff;
  ProgressLine line(quiet);
  line.update({.done = 1});
  line.tick();
  line.finish();
  EXPECT_EQ(terminal.writes(), 0);
}

TEST_F(ProgressLineTest, PlainStyleDrawsNoBarOnATerminal) {
  VirtualTerminal terminal;
  Console console(terminal);
  ProgressOptions plain = options(console);
  plain.style = ProgressStyle::kPlain;
  ProgressLine line(plain);
  line.update({.done = 10});
  line.tick();
  line.finish();
  EXPECT_THAT(
      terminal.lines(),
      ElementsAre("Epoch 1/2: 10/10 (100 %), 0:00:00", ""));
}

// A screen that lets a test wait for the timer's drawings without sleeping.
class CountingScreen final : public Screen {
 public:
  [[nodiscard]] TerminalTraits traits() const override {
    return {.is_terminal = true, .animated = true};
  }
  [[nodiscard]] int width() const override {
    return 80;
  }
  void write(std::string_view text) override {
    if (text.find(" 5/10") != std::string_view::npos && !seen_) {
      seen_ = true;
      drawn.count_down();
    }
  }
  std::latch drawn{1};

 private:
  bool seen_ = false;
};

TEST(ProgressLineTimer, DrawsByItselfWhileOthersLog) {
  CountingScreen screen;
  Console console(screen);
  ProgressLine line(
      {.total = 10,
       .console = &console,
       .refresh = std::chrono::milliseconds(1)});
  const std::jthread other([&console] {
    for (int i = 0; i < 100; ++i) {
      console.print("line");
    }
  });
  line.update({.done = 5});
  screen.drawn.wait();
  line.finish();
}

} // namespace
} // namespace lockstep::report
