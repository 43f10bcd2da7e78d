// SPDX-License-Identifier: BSD-3-Clause
//
// From what is known of the other ranks to who keeps a collective from ending.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/distributed/watch/flight_log.h"

namespace lockstep::dist::internal {

/// How a rank is. Nothing is known of Python's ranks.
enum class PeerKind {
  kUnknown,
  kRunning,
  /// SIGSTOP, or a debugger.
  kStopped,
  /// Has ended its part of the job on its own account.
  kLeft,
  /// Has given up, because of another rank.
  kFailed,
  /// Its process has ended without a word.
  kGone,
};

struct PeerView {
  int rank = 0;
  PeerKind kind = PeerKind::kUnknown;
  std::string host = {};
  /// On this host; 0 elsewhere.
  pid_t pid = 0;
  /// The last collective that it has begun, and the number of the first one
  /// that has not ended.
  std::optional<FlightEntry> last = {};
  std::uint64_t first_open = 0;
  /// Where it went another way than this rank, now or before. Not known of
  /// other hosts' ranks.
  std::optional<CollectiveMismatch> difference = {};
  /// Why it has given up, if it has. Not known of other hosts' ranks.
  std::optional<Blame> blame = {};
};

/// A collective that does not end, as this rank sees it.
struct Stuck {
  FlightEntry entry = {};
  /// The group's, as ranks of the job.
  std::vector<int> ranks = {};
  /// It waited as long as it was to: who is late is to blame, too.
  bool is_timeout = false;
  /// Another rank has given up already, maybe for such a reason; seen from the
  /// views.
  bool is_follow_on = false;
  /// Nothing is heard of a rank; seen from the views.
  bool has_unknown = false;
  /// Nanoseconds since the epoch.
  std::int64_t now = 0;
};

enum class Certainty {
  /// Nobody was found, or somebody whom another one may have stopped.
  kGuess,
  /// As far as is known, the collective may still end.
  kLate,
  /// It cannot end any more.
  kSure,
};

struct Answer {
  Certainty certainty = Certainty::kGuess;
  /// "rank 1 is gone (process 4242 has ended); its last collective: 16 ..."
  std::string text = {};
  /// The same, or what the rank said that gave up first.
  std::string cause = {};
  /// Ranks do different things: an error of the program.
  bool is_mismatch = false;
};

/// Who is to blame, by the worst that was found. Pure.
Answer who_is_missing(Stuck stuck, const std::vector<PeerView>& views);

} // namespace lockstep::dist::internal
