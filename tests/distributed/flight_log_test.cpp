// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/flight_log.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

FlightEntry call(std::uint64_t number, std::string_view group = "0") {
  return {.number = number, .name = "all_reduce", .group = group};
}

TEST(FlightLog, TellsWhatRunsAndWhatHasEnded) {
  const auto log = FlightLog::create();
  EXPECT_EQ(log->last(), std::nullopt);
  EXPECT_EQ(log->first_open("0"), 1U);
  const auto first = log->begin(call(1));
  const auto second = log->begin(call(2));
  log->end(second, /*has_failed=*/false);
  EXPECT_EQ(log->last()->number, 2U);
  EXPECT_EQ(log->first_open("0"), 1U);
  log->end(first, /*has_failed=*/false);
  EXPECT_EQ(log->first_open("0"), 3U);
  const auto third = log->begin(call(3));
  log->end(third, /*has_failed=*/true);
  EXPECT_EQ(log->first_open("0"), 3U);
  const auto entries = log->entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_GE(entries[1].end, entries[1].start);
  EXPECT_TRUE(entries[2].has_failed);
}

TEST(FlightEntry, SaysHowAndWhatFor) {
  FlightEntry entry = call(7);
  EXPECT_EQ(entry.text(), "7 (all_reduce)");
  entry.how = "max";
  EXPECT_EQ(entry.text(), "7 (all_reduce max)");
  entry.purpose = "join";
  EXPECT_EQ(entry.text(), "7 (all_reduce max for join)");
}

TEST(FlightLog, GroupsCountForThemselves) {
  const auto log = FlightLog::create();
  log->begin(call(1, "all"));
  log->end(log->begin(call(1, "pair")), /*has_failed=*/false);
  EXPECT_EQ(log->last_of("all")->end, 0);
  EXPECT_EQ(log->first_open("all"), 1U);
  EXPECT_EQ(log->first_open("pair"), 2U);
  EXPECT_EQ(log->last_of("none"), std::nullopt);
}

TEST(FlightLog, FindsThoseThatAreKept) {
  const auto log = FlightLog::create();
  EXPECT_EQ(log->find("all", 1), std::nullopt);
  for (std::uint64_t i = 1; i <= FlightLog::kCapacity; ++i) {
    log->begin(call(i, "all"));
    log->begin(call(i, "pair"));
  }
  EXPECT_EQ(log->find("pair", FlightLog::kCapacity)->group.view(), "pair");
  EXPECT_EQ(log->find("all", FlightLog::kCapacity - 3)->number, 509U);
  EXPECT_EQ(log->find("all", FlightLog::kCapacity + 1), std::nullopt);
  EXPECT_EQ(log->find("all", 1), std::nullopt); // overwritten
  EXPECT_EQ(log->find("none", 1), std::nullopt);
}

TEST(FlightLog, TellsWhereAnotherWentAnotherWay) {
  const auto own = FlightLog::create();
  const auto other = FlightLog::create();
  EXPECT_EQ(own->first_difference(*other, "all"), std::nullopt);
  own->begin(call(1, "all"));
  own->begin(call(2, "all"));
  own->begin(call(3, "all"));
  other->begin({.number = 1, .name = "broadcast", .group = "pair"});
  other->begin(call(1, "all"));
  EXPECT_EQ(own->first_difference(*other, "all"), std::nullopt);
  other->begin({.number = 2, .name = "broadcast", .group = "all"});
  other->begin({.number = 3, .name = "barrier", .group = "all"});
  const auto found = own->first_difference(*other, "all");
  ASSERT_NE(found, std::nullopt);
  EXPECT_EQ(found->own.text(), "2 (all_reduce)");
  EXPECT_EQ(found->other.text(), "2 (broadcast)");
}

TEST(FlightLog, KeepsTheNewest) {
  const auto log = FlightLog::create();
  const auto early = log->begin(call(1));
  for (std::uint64_t i = 2; i <= FlightLog::kCapacity + 10; ++i) {
    log->end(log->begin(call(i)), /*has_failed=*/false);
  }
  log->end(early, /*has_failed=*/true); // its place is another's by now
  const auto entries = log->entries();
  ASSERT_EQ(entries.size(), FlightLog::kCapacity);
  EXPECT_EQ(entries.front().number, 11U);
  EXPECT_EQ(entries.back().number, FlightLog::kCapacity + 10);
  EXPECT_FALSE(entries.back().has_failed);
}

// A place is written anew while it is read: what is found there belongs to a
// later collective.
TEST(FlightLog, WhatIsOverwrittenMeanwhileIsNotTakenForAnOlderOne) {
  const auto log = FlightLog::create();
  std::atomic<bool> goes_on = true;
  const std::jthread writer([&] {
    std::uint64_t before = log->begin(call(1));
    for (std::uint64_t number = 2; goes_on; ++number) {
      const std::uint64_t next = log->begin(call(number));
      log->end(before, /*has_failed=*/number % 2 == 0);
      before = next;
    }
  });
  while (!log->last()) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 2000; ++i) {
    const auto entries = log->entries();
    EXPECT_EQ(
        std::ranges::adjacent_find(
            entries,
            std::ranges::greater_equal(),
            &FlightEntry::number),
        entries.end())
        << i;
    // Those that have ended are whole.
    EXPECT_TRUE(std::ranges::all_of(entries, [](const FlightEntry& entry) {
      return entry.end == 0 ||
             (entry.end > 0 && entry.has_failed == (entry.number % 2 == 1));
    })) << i;
    EXPECT_TRUE(log->last()) << i;
  }
  goes_on = false;
}

TEST(FlightLog, LongTextIsCutOff) {
  const std::string name(100, 'x');
  const auto log = FlightLog::create();
  log->begin({.number = 1, .name = name});
  EXPECT_EQ(log->last()->name.view(), name.substr(0, 31));
}

TEST(FlightLog, ItIsReadAfterItsProcessWasKilled) {
  // The child makes the log, says where, and waits for its end.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto log = FlightLog::create();
    log->end(log->begin(call(1)), /*has_failed=*/false);
    log->begin(call(2));
    const int descriptor = log->descriptor();
    static_cast<void>(!::write(ends[1], &descriptor, sizeof descriptor));
    ::pause();
    ::_exit(0);
  }
  int descriptor = -1;
  ASSERT_EQ(::read(ends[0], &descriptor, sizeof descriptor), 4);
  const auto log = FlightLog::open(format("/proc/{}/fd/{}", child, descriptor));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->last()->number, 2U);
  EXPECT_EQ(log->first_open("0"), 2U);
  EXPECT_EQ(log->state(), RankState::kRunning);
}

TEST(FlightLog, WhatARankSaysFirstCounts) {
  const auto log = FlightLog::create();
  EXPECT_FALSE(log->blame());
  log->fail({.text = "rank 1 is gone", .is_mismatch = true});
  log->fail({.text = "another"});
  log->leave();
  EXPECT_EQ(log->state(), RankState::kFailed);
  EXPECT_EQ(log->blame()->text.view(), "rank 1 is gone");
  EXPECT_TRUE(log->blame()->is_mismatch);
}

TEST(FlightLog, OtherFilesAreNone) {
  EXPECT_EQ(FlightLog::open("/proc/self/exe"), nullptr);
  EXPECT_EQ(FlightLog::open("/nowhere"), nullptr);
}

} // namespace
} // namespace lockstep::dist::internal
