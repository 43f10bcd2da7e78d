// SPDX-License-Identifier: BSD-3-Clause
//
// Lets the tasks of one job run one after the other, in their order, where what
// they call is one object.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace lockstep::parallel {

/// Threads: all tasks 0 .. n of a job take their turn, each in its own thread.
class Turns {
 public:
  /// Where not `in_order`, nobody waits.
  explicit Turns(bool in_order) : in_order_(in_order) {}

  /// The turn of task `index`: begins after those of all before it have ended.
  class Mine {
   public:
    Mine(Turns& turns, std::size_t index) : turns_(turns) {
      if (turns.in_order_) {
        std::unique_lock lock(turns.mutex_);
        turns.ended_.wait(lock, [&] { return turns.next_ == index; });
      }
    }
    ~Mine() {
      if (turns_.in_order_) {
        const std::lock_guard lock(turns_.mutex_);
        ++turns_.next_;
        turns_.ended_.notify_all();
      }
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;

   private:
    Turns& turns_;
  };

 private:
  bool in_order_;
  std::size_t next_ = 0;
  std::mutex mutex_ = {};
  std::condition_variable ended_ = {};
};

} // namespace lockstep::parallel
