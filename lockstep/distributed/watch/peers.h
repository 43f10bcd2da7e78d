// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank can find out about the others without their help: those on its
// host by their processes and by the memory in which they note collectives,
// those on other hosts by what they have left in the store.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/internal/descriptor.h"
#include "lockstep/distributed/watch/diagnosis.h"
#include "lockstep/distributed/watch/flight_log.h"

namespace lockstep::dist::internal {

/// Threads: `look` from several; the others from one.
class Peers {
 public:
  /// Says in the store how this rank can be watched. `log` outlives it.
  Peers(
      int rank,
      int size,
      c10::intrusive_ptr<c10d::Store> store,
      const FlightLog& log);

  /// Looks for the other ranks, all of which must have said how. Does nothing
  /// the second time.
  /// Errors: throws what the store throws.
  void attach();

  /// All ranks but this one, as seen from here; their collectives are those of
  /// `group`.
  [[nodiscard]] std::vector<PeerView> look(std::string_view group) const;
  /// Whether the ranks of this host that have begun it have begun the same.
  [[nodiscard]] bool agree(const FlightEntry& entry) const;
  /// Descriptors that can be read from (poll) once a process has ended.
  [[nodiscard]] std::vector<int> watched_ends() const;
  /// Whether there are ranks of which only the store can tell.
  [[nodiscard]] bool has_remote() const {
    return has_remote_;
  }
  /// Tells the other hosts about the ranks of this one, and asks about theirs.
  /// Errors: throws what the store throws, within 2 s.
  void exchange_views();
  /// The rings of the ranks of this host, by rank; null for the others.
  [[nodiscard]] const FlightLog* log_of(int rank) const;

 private:
  struct Peer {
    /// Empty for one that does not say, as ranks of Python.
    std::string host = {};
    pid_t pid = 0;
    /// Of its process, if that is on this host and not this one.
    Descriptor end = {};
    std::unique_ptr<FlightLog> log = {};
    /// What another host has told.
    PeerView told = {};
  };
  void attach_one(Peer& peer, const std::string& text) const;
  [[nodiscard]] PeerView view_of(
      int rank,
      const Peer& peer,
      std::optional<std::string_view> group) const;

  int rank_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
  const FlightLog& log_;
  std::vector<Peer> peers_;
  bool is_attached_ = false;
  bool has_remote_ = false;
  mutable std::mutex told_;
};

} // namespace lockstep::dist::internal
