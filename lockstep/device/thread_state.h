// SPDX-License-Identifier: BSD-3-Clause
//
// Carries what LibTorch keeps per thread from the caller to a worker: gradient
// and inference mode, autocast and its dtypes, profiler, dispatch keys, and the
// CPU's treatment of denormals. A new thread has none of these.
//   ThreadState state = ThreadState::capture();        // in the caller
//   worker: ThreadStateGuard guard(state);             // restored at its end
#pragma once

#include <memory>

namespace at {
class ThreadLocalState;
class ThreadLocalStateGuard;
} // namespace at

namespace lockstep {

/// A copy of the state of one thread.
/// Threads: may be read by several threads at once.
class ThreadState {
 public:
  /// The state of the calling thread. Capture for each job: modes change.
  static ThreadState capture();

 private:
  friend class ThreadStateGuard;
  std::shared_ptr<const at::ThreadLocalState> state_ = {};
  /// Bits of the floating-point control register: flush denormals or not.
  unsigned denormals_ = 0;
};

/// Puts a captured state on this thread for the guard's lifetime.
class ThreadStateGuard {
 public:
  explicit ThreadStateGuard(const ThreadState& state);
  ~ThreadStateGuard();
  ThreadStateGuard(const ThreadStateGuard&) = delete;
  ThreadStateGuard& operator=(const ThreadStateGuard&) = delete;

 private:
  std::unique_ptr<at::ThreadLocalStateGuard> guard_;
  unsigned saved_denormals_ = 0;
};

} // namespace lockstep
