// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/interrupt.h"

#include <csignal>
#include <functional>

#include <gtest/gtest.h>

#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

// What the program did before, and does again.
void leave_it(int /*signal*/) {}

TEST(InterruptGuard, RemembersTheFirstSignal) {
  const InterruptGuard guard;
  EXPECT_EQ(guard.signal(), 0);
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_EQ(guard.signal(), SIGTERM);
}

TEST(InterruptGuard, PutsTheOldHandlersBack) {
  const auto old = std::signal(SIGINT, leave_it);
  { const InterruptGuard guard; }
  EXPECT_EQ(std::signal(SIGINT, old), leave_it);
}

// As nohup and scripts that start programs with `&` want it.
TEST(InterruptGuard, LeavesAnIgnoredSignalIgnored) {
  for (const int number : {SIGINT, SIGTERM}) {
    const auto old = std::signal(number, SIG_IGN);
    {
      const InterruptGuard guard;
      ASSERT_EQ(std::raise(number), 0);
      EXPECT_EQ(guard.signal(), 0);
    }
    EXPECT_EQ(std::signal(number, old), SIG_IGN);
  }
}

TEST(InterruptGuard, StartsAfreshEachTime) {
  {
    const InterruptGuard guard;
    ASSERT_EQ(std::raise(SIGINT), 0);
  }
  EXPECT_EQ(InterruptGuard().signal(), 0);
}

TEST(StopOnSignals, LastsAsLongAsItsFunction) {
  const auto old = std::signal(SIGINT, leave_it);
  {
    const std::function<bool()> should_stop = stop_on_signals();
    EXPECT_FALSE(should_stop());
    ASSERT_EQ(std::raise(SIGINT), 0);
    EXPECT_TRUE(should_stop());
  }
  EXPECT_EQ(std::signal(SIGINT, old), leave_it);
}

TEST(StopOnSignals, FunctionsShareTheSignals) {
  const auto old = std::signal(SIGTERM, leave_it);
  std::function<bool()> should_stop = stop_on_signals();
  should_stop = stop_on_signals();
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_TRUE(should_stop());
  should_stop = {};
  EXPECT_EQ(std::signal(SIGTERM, old), leave_it);
}

TEST(ConsoleLog, GoesToStderr) {
  ::testing::internal::CaptureStderr();
  console_log().write(LogLevel::kInfo, "epoch 1 of 2");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "epoch 1 of 2\n");
}

TEST(ConsoleLines, TellEpochs) {
  EpochRecord record;
  record.epoch = 3;
  const auto lines = console_lines();
  ::testing::internal::CaptureStderr();
  lines->on_epoch(record);
  EXPECT_TRUE(::testing::internal::GetCapturedStderr().starts_with(
      "Epoch: [3] Total time: "));
}

TEST(InterruptGuardDeathTest, TheSecondSignalEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = [](int signal) {
    const InterruptGuard guard;
    (void)std::raise(signal);
    (void)std::raise(signal);
  };
  EXPECT_EXIT(twice(SIGINT), ::testing::ExitedWithCode(130), "");
  EXPECT_EXIT(twice(SIGTERM), ::testing::ExitedWithCode(143), "");
}

} // namespace
} // namespace lockstep::train
