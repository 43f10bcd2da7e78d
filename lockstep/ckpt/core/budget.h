// SPDX-License-Identifier: BSD-3-Clause
//
// One account for one file: what was read again, made and done for it, by all
// who work on it together, and how much its size allows. A text that is copied
// a thousand times takes a thousand times the memory that it takes in the file,
// and a name that is searched for each time the square: that is counted here,
// before or as it happens.
//   const auto budget = budget_of(limits, source.size());
//   LOCKSTEP_TRY(budget->make(bytes_of_call(name, args)));
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {

// A public header names the class, which would show its functions.
#define LOCKSTEP_HIDDEN [[gnu::visibility("hidden")]]

/// What a file may ask for, for each of its bytes.
inline constexpr std::uint64_t kMadePerByte = 16;
inline constexpr std::uint64_t kStepsPerByte = 64;

/// Threads: any; two that count at once may lose a count.
class Budget {
 public:
  LOCKSTEP_HIDDEN explicit Budget(const Limits& limits);

  /// Allows what a file of `bytes` may ask for: each file is added once.
  LOCKSTEP_HIDDEN void add_file(std::uint64_t bytes);
  /// The same of an archive whose records are larger by `bytes` when they are
  /// inflated; `max_ratio` bounds them. Of several the largest counts, for one
  /// is opened several times.
  LOCKSTEP_HIDDEN void inflates_by(std::uint64_t bytes);

  /// Counts bytes that are made: values, names, copies.
  /// Errors: kUnsafe (E_LIMIT), as of the next ones.
  LOCKSTEP_HIDDEN Status make(std::uint64_t bytes) {
    return made_.add(bytes) ? Status() : Status(too_much_made());
  }
  /// Counts what is done: opcodes, values that a walk looks at, bytes that are
  /// searched, comparisons.
  LOCKSTEP_HIDDEN Status step(std::uint64_t steps = 1) {
    return steps_.add(steps) ? Status() : Status(too_many_steps());
  }
  /// Counts bytes that are copied out of the file because nothing says how many
  /// are needed: they may be read again. As many as may be made.
  LOCKSTEP_HIDDEN Status read(std::uint64_t bytes) {
    return read_.add(bytes) ? Status() : Status(too_much_read());
  }
  LOCKSTEP_HIDDEN void note_depth(std::uint64_t levels);

  [[nodiscard]] LOCKSTEP_HIDDEN std::uint64_t made() const {
    return made_.count;
  }
  [[nodiscard]] LOCKSTEP_HIDDEN std::uint64_t steps() const {
    return steps_.count;
  }
  [[nodiscard]] LOCKSTEP_HIDDEN std::uint64_t bytes_read() const {
    return read_.count;
  }
  /// Levels of the deepest value.
  [[nodiscard]] LOCKSTEP_HIDDEN std::uint64_t depth() const {
    return depth_;
  }
  /// Units: bytes, of the files and of what is inflated.
  [[nodiscard]] LOCKSTEP_HIDDEN std::uint64_t file_bytes() const;
  /// The part of what is allowed that is used up, of the counter that is
  /// nearest to its end.
  [[nodiscard]] LOCKSTEP_HIDDEN double used() const;

 private:
  using Number = std::atomic<std::uint64_t>;

  // A locked addition for each value would be what most time goes into.
  struct Counter {
    LOCKSTEP_HIDDEN bool add(std::uint64_t more) {
      std::uint64_t sum = count.load(std::memory_order_relaxed);
      sum = more > ~sum ? ~std::uint64_t{0} : sum + more;
      count.store(sum, std::memory_order_relaxed);
      return sum <= most.load(std::memory_order_relaxed);
    }

    Number count = 0;
    Number most = 0;
  };

  LOCKSTEP_HIDDEN void allow();
  [[nodiscard]] LOCKSTEP_HIDDEN Error too_much_made() const;
  [[nodiscard]] LOCKSTEP_HIDDEN Error too_many_steps() const;
  [[nodiscard]] LOCKSTEP_HIDDEN Error too_much_read() const;

  std::uint64_t free_bytes_;
  std::uint64_t free_steps_;
  Number files_ = 0;
  Number inflated_ = 0;
  Number depth_ = 0;
  Counter made_;
  Counter steps_;
  Counter read_;
};

/// That of `limits`, or a new one of a file of `bytes`.
std::shared_ptr<Budget> budget_of(const Limits& limits, std::uint64_t bytes);

/// Adds a file of `bytes` to that of `limits`, if they have one.
void add_file(const Limits& limits, std::uint64_t bytes);

/// True if that of `limits` has none left: what cannot be read then is no
/// foreign bytes.
bool is_spent(const Limits& limits);

/// `limits` with a budget: its own, or that of a file of `bytes`.
Limits counting(Limits limits, std::uint64_t bytes);
/// `limits` with the budget of a file that was read.
Limits counting(Limits limits, const Checkpoint& file);

/// How far a walk over the value of the file goes.
WalkBounds bounds_of(const Limits& limits);

#undef LOCKSTEP_HIDDEN

} // namespace lockstep::ckpt
