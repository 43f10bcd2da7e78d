// SPDX-License-Identifier: BSD-3-Clause
//
// Lets the tasks of one job run one after the other, in their order, where what
// they call is one object.
#pragma once

#include <atomic>
#include <cstddef>

namespace lockstep::parallel {

/// Threads: all tasks 0 .. n of a job take their turn.
class Turns {
 public:
  /// Where not `in_order`, nobody waits.
  explicit Turns(bool in_order) : in_order_(in_order) {}

  /// The turn of task `index`: begins after those of all before it have ended.
  class Mine {
   public:
    Mine(Turns& turns, std::size_t index) : turns_(turns) {
      std::size_t next = 0;
      while (turns.in_order_ && (next = turns.next_.load()) != index) {
        turns.next_.wait(next);
      }
    }
    ~Mine() {
      ++turns_.next_;
      turns_.next_.notify_all();
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;

   private:
    Turns& turns_;
  };

 private:
  bool in_order_;
  std::atomic<std::size_t> next_ = 0;
};

} // namespace lockstep::parallel
