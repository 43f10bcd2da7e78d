// SPDX-License-Identifier: BSD-3-Clause
//
// Where the ranks of one host meet. Time goes in phases: in a phase a rank
// writes into its own box and reads what any rank wrote in the phase before;
// `meet` ends the phase when all have come. Each rank has two boxes that take
// turns, so one meeting for each phase is enough: who writes into a box has met
// the others after they read it.
//   copy(mine, communicator.own_box());
//   communicator.meet();
//   copy(communicator.box_of(0), theirs);
// Two ranks can meet without the others: one sends the other a message, whose
// pages go through the box into which the sender does not write meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/internal/descriptor.h"
#include "lockstep/distributed/shm/segment.h"

namespace lockstep::dist::shm {

/// The other ranks, and how long to wait for them.
struct CommunicatorOptions {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout = {};
  /// By rank: readable when that rank's process has ended. None: it is this
  /// process.
  std::vector<Descriptor> processes = {};
};

/// With whom a rank has a message, and how long it waits for that rank.
struct Partner {
  int rank = 0;
  /// Messages of other tags are not meant.
  int tag = 0;
  std::chrono::milliseconds timeout = {};
};

/// Threads: one, but for `abort`.
class Communicator {
 public:
  /// Units: bytes that a rank can write in a phase.
  static constexpr std::size_t kBoxBytes = std::size_t{1} << 20;
  static std::size_t bytes_for(int size);

  /// `memory` has `bytes_for(size)` bytes, zeros before the first rank comes.
  Communicator(Mapping memory, CommunicatorOptions options);
  /// The others see that this rank has left.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// The phases that follow are for `call`, a number that is the same on all
  /// ranks for the same call.
  void begin(std::uint64_t call) {
    call_ = call;
  }
  /// Ends the phase. Errors: throws std::runtime_error that names the rank
  /// which has ended, left, not come in time, or come for another call; the
  /// communicator is of no use then.
  void meet();
  /// Return when the message has arrived: the sender waits for the receiver.
  /// Errors: as `meet`; also if the message has another size than `bytes`.
  void send(const Partner& to, std::span<const std::byte> bytes);
  void receive(const Partner& from, std::span<std::byte> bytes);
  /// Whether a message comes in time. Errors: as `meet`, of earlier calls only.
  bool expects(const Partner& from);
  /// The thread that waits leaves with an error, and the others see that this
  /// rank has left.
  void abort();
  /// It is of no use any more.
  [[nodiscard]] bool is_broken() const {
    return !broken_.empty();
  }
  [[nodiscard]] std::byte* own_box() const;
  /// As that rank left it in the last phase.
  [[nodiscard]] const std::byte* box_of(int rank) const;

 private:
  struct Mark;
  struct Line;
  struct Message;
  enum class Cause : std::uint32_t;

  [[nodiscard]] Line& line(int rank) const;
  [[nodiscard]] Message& message(int from, int to) const;
  /// Why the first rank that gave up did so; 0: none has.
  [[nodiscard]] std::uint32_t& reason() const;
  [[nodiscard]] std::byte* box(int rank, std::uint32_t phase) const;
  void check_usable();
  /// Why it has not come, if so. `mark` changes when `has_come` may do.
  template <class HasCome>
  [[nodiscard]] Cause
  wait(const Partner& partner, Mark& mark, const HasCome& has_come);
  [[nodiscard]] Cause wait_for_message(const Partner& from);
  [[nodiscard]] Cause state_of(int rank);
  void check_aborted();
  /// Does nothing without a cause.
  void check(Cause cause, const Partner& partner);
  [[noreturn]] void break_off(std::string text);

  Mapping memory_;
  CommunicatorOptions options_;
  std::uint32_t phase_ = 0;
  std::uint64_t call_ = 0;
  std::atomic<bool> is_aborted_ = false;
  /// Why it is of no use any more.
  std::string broken_ = {};
};

} // namespace lockstep::dist::shm
