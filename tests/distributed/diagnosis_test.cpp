// SPDX-License-Identifier: BSD-3-Clause
//
// Who is said to keep a collective from ending.
#include "lockstep/distributed/watch/diagnosis.h"

#include <gmock/gmock.h>

namespace lockstep::dist::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kSecond = 1'000'000'000;

FlightEntry entry(std::uint64_t number, std::int64_t end = 0) {
  return {
      .number = number,
      .start = 1 * kSecond,
      .end = end,
      .name = "all_reduce",
      .group = "0",
      .dtype = "Float",
      .sizes = "(3,)",
      .elements = 3};
}

PeerView peer(int rank, PeerKind kind, std::uint64_t last, bool ended = true) {
  return {
      .rank = rank,
      .kind = kind,
      .host = "box",
      .pid = 100 + rank,
      .last = last == 0 ? std::nullopt
                        : std::optional(entry(last, ended ? 2 * kSecond : 0)),
      .first_open = ended ? last + 1 : last};
}

Stuck stuck(bool is_timeout) {
  return {
      .entry = entry(17),
      .ranks = {0, 1, 2, 3},
      .is_timeout = is_timeout,
      .now = 7 * kSecond};
}

TEST(Diagnosis, ARankThatIsGoneComesFirst) {
  const Answer answer = who_is_missing(
      stuck(false),
      {peer(1, PeerKind::kFailed, 17, false),
       peer(2, PeerKind::kGone, 16),
       peer(3, PeerKind::kRunning, 15)});
  EXPECT_EQ(answer.certainty, Certainty::kSure);
  EXPECT_EQ(
      answer.text,
      "rank 2 is gone (process 102 has ended); its last collective: 16 "
      "(all_reduce), ended 5.0 s ago");
}

TEST(Diagnosis, OneThatWasKilledInsideALaterOneIsToBlame) {
  auto killed = peer(1, PeerKind::kGone, 18, false);
  killed.first_open = 17; // two were on their way
  const Answer answer = who_is_missing(stuck(true), {killed});
  EXPECT_EQ(answer.certainty, Certainty::kSure);
  EXPECT_THAT(answer.text, HasSubstr("rank 1 is gone"));
  EXPECT_THAT(answer.text, HasSubstr("18 (all_reduce), begun 6.0 s ago"));
}

TEST(Diagnosis, OneThatHasDoneItsPartIsToBlameOnlyForABrokenConnection) {
  const std::vector<PeerView> views{peer(1, PeerKind::kLeft, 17)};
  EXPECT_EQ(who_is_missing(stuck(true), views).text, "");
  EXPECT_THAT(
      who_is_missing(stuck(false), views).text,
      HasSubstr("rank 1 has left the job (process 101)"));
}

TEST(Diagnosis, AllWhoAreLateAreNamedWhenTheTimeIsOver) {
  const Answer answer = who_is_missing(
      stuck(true),
      {peer(1, PeerKind::kRunning, 17, false),
       peer(2, PeerKind::kRunning, 16),
       peer(3, PeerKind::kRunning, 0)});
  EXPECT_EQ(answer.certainty, Certainty::kLate);
  EXPECT_EQ(
      answer.text,
      "rank 2 is late (process 102); its last collective: 16 (all_reduce), "
      "ended 5.0 s ago; rank 3 is late (process 103); it has begun no "
      "collective");
}

TEST(Diagnosis, AStoppedRankIsNamedAlsoInsideACollective) {
  const Answer answer = who_is_missing(
      stuck(true),
      {peer(1, PeerKind::kRunning, 16),
       peer(2, PeerKind::kStopped, 17, false)});
  EXPECT_THAT(
      answer.text,
      AllOf(HasSubstr("rank 2 is stopped"), Not(HasSubstr("rank 1"))));
}

TEST(Diagnosis, LateRanksBreakNoConnection) {
  const std::vector<PeerView> views{
      peer(1, PeerKind::kRunning, 16),
      {.rank = 2, .kind = PeerKind::kUnknown, .host = "far"}};
  EXPECT_EQ(
      who_is_missing(stuck(false), views).text,
      "rank 2 on host far does not answer");
  EXPECT_THAT(
      who_is_missing(stuck(true), views).text,
      HasSubstr("rank 1 is late"));
}

TEST(Diagnosis, WhoGaveUpBeforeMayHaveWaitedForALateOne) {
  const Answer answer = who_is_missing(
      stuck(false),
      {peer(1, PeerKind::kFailed, 17, false), peer(2, PeerKind::kRunning, 16)});
  EXPECT_THAT(answer.text, HasSubstr("rank 2 is late"));
  EXPECT_THAT(
      who_is_missing(
          stuck(false),
          {peer(1, PeerKind::kFailed, 17, false),
           peer(2, PeerKind::kRunning, 17, false)})
          .text,
      HasSubstr("rank 1 has given up before"));
}

TEST(Diagnosis, WhoGaveUpBeforeIsQuoted) {
  auto first = peer(1, PeerKind::kFailed, 18, false);
  first.blame = Blame{.text = "rank 3 does something", .is_mismatch = true};
  auto second = peer(2, PeerKind::kFailed, 18, false);
  second.blame = Blame{.text = "rank 1 has gone"};
  const Answer answer = who_is_missing(stuck(false), {first, second});
  EXPECT_EQ(answer.text, "rank 1 has given up before: rank 3 does something");
  EXPECT_EQ(answer.cause, "rank 3 does something"); // for the next to quote
  EXPECT_TRUE(answer.is_mismatch);
}

TEST(Diagnosis, OneThatWaitsItselfForWhomNobodyHearsIsNotToBlame) {
  const std::vector<PeerView> views{
      peer(1, PeerKind::kRunning, 16, false),
      {.rank = 2, .kind = PeerKind::kUnknown, .host = "far"}};
  EXPECT_EQ(
      who_is_missing(stuck(true), views).text,
      "rank 2 on host far does not answer");
  EXPECT_THAT(
      who_is_missing(stuck(true), {views.front()}).text,
      HasSubstr("rank 1 is late"));
}

TEST(Diagnosis, AnotherCallAsTheSameCollectiveIsAMismatch) {
  auto other = peer(1, PeerKind::kFailed, 18, false); // in the next already
  other.difference = {.own = entry(16), .other = entry(16)};
  other.difference->other.sizes = "(5,)";
  const Answer answer = who_is_missing(stuck(false), {other});
  EXPECT_TRUE(answer.is_mismatch);
  EXPECT_EQ(
      answer.text,
      "rank 1 does something else: its collective 16 (all_reduce) of Float "
      "(5,), here 16 (all_reduce) of Float (3,)");
}

TEST(Diagnosis, RanksOfOtherGroupsAreNotAsked) {
  Stuck asked = stuck(true);
  asked.ranks = {0, 2};
  EXPECT_EQ(who_is_missing(asked, {peer(1, PeerKind::kGone, 3)}).text, "");
}

TEST(Diagnosis, ManyAreCounted) {
  Stuck asked = stuck(true);
  std::vector<PeerView> views;
  for (int rank = 1; rank < 8; ++rank) {
    asked.ranks.push_back(rank);
    views.push_back(peer(rank, PeerKind::kGone, 16));
  }
  EXPECT_THAT(
      who_is_missing(asked, views).text,
      AllOf(HasSubstr("rank 4 is gone"), testing::EndsWith("; and 3 more")));
}

} // namespace
} // namespace lockstep::dist::internal
