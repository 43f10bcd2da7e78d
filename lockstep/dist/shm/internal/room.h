// SPDX-License-Identifier: BSD-3-Clause
//
// Where the ranks of one host meet. Time goes in phases: in a phase a rank
// writes into its own box and reads what any rank wrote in the phase before;
// `meet` ends the phase when all have come. Each rank has two boxes that take
// turns, so one meeting for each phase is enough: who writes into a box has met
// the others after they read it.
//   copy(mine, room.own_box());
//   room.meet();
//   copy(room.box_of(0), theirs);
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/descriptor.h"
#include "lockstep/dist/shm/internal/segment.h"

namespace lockstep::dist::shm {

/// The other ranks, and how long to wait for them.
struct RoomOptions {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout = {};
  /// By rank: readable when that rank's process has ended. None: it is this
  /// process.
  std::vector<Descriptor> processes = {};
};

/// Threads: one, but for `abort`.
class Room {
 public:
  /// Units: bytes that a rank can write in a phase.
  static constexpr std::size_t kBoxBytes = std::size_t{1} << 20;
  static std::size_t bytes_for(int size);

  /// `memory` has `bytes_for(size)` bytes, zeros before the first rank comes.
  Room(Mapping memory, RoomOptions options);
  /// The others see that this rank has left.
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  /// Ends the phase. Errors: throws std::runtime_error that names the rank
  /// which has ended, left or not come in time; the room is of no use then.
  void meet();
  /// The thread that waits in `meet` leaves it with an error, and the others
  /// see that this rank has left.
  void abort();
  /// It is of no use any more.
  [[nodiscard]] bool is_broken() const {
    return !broken_.empty();
  }
  [[nodiscard]] std::byte* own_box() const;
  /// As that rank left it in the last phase.
  [[nodiscard]] const std::byte* box_of(int rank) const;

 private:
  struct Line;
  enum class Cause : std::uint32_t;

  [[nodiscard]] Line& line(int rank) const;
  /// Why the first rank that gave up did so; 0: none has.
  [[nodiscard]] std::uint32_t& reason() const;
  [[nodiscard]] std::byte* box(int rank, std::uint32_t phase) const;
  [[nodiscard]] bool has_come(int rank) const;
  void wait_for(int rank);
  void sleep_for(int rank) const;
  void check_process(int rank);
  void check_aborted();
  [[noreturn]] void fail(Cause cause, int rank);
  [[noreturn]] void break_off(std::string text);

  Mapping memory_;
  RoomOptions options_;
  std::uint32_t phase_ = 0;
  std::atomic<bool> is_aborted_ = false;
  /// Why it is of no use any more.
  std::string broken_ = {};
};

} // namespace lockstep::dist::shm
