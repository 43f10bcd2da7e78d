// SPDX-License-Identifier: BSD-3-Clause
//
// Carries what LibTorch keeps per thread from the caller to a worker: gradient
// and inference mode, autocast and its dtypes, profiler, dispatch keys, and the
// CPU's treatment of denormals. A new thread has none of these.
//   const ThreadState state = ThreadState::capture();  // in the caller
//   state.apply();                                     // in the worker
// `apply` takes less than a microsecond.
#pragma once

#include <memory>

namespace at {
class ThreadLocalState;
} // namespace at

namespace lockstep {

/// A copy of the state of one thread.
/// Threads: may be read by several threads at once.
class ThreadState {
 public:
  /// The state of the calling thread. Capture for each job: modes change.
  static ThreadState capture();

  /// Gives it to the calling thread.
  void apply() const;

 private:
  std::shared_ptr<const at::ThreadLocalState> state_ = {};
  /// Bits of the floating-point control register: flush denormals or not.
  unsigned denormals_ = 0;
};

} // namespace lockstep
