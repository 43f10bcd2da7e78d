// SPDX-License-Identifier: BSD-3-Clause
//
// Carries what LibTorch keeps per thread from the caller to a worker: gradient
// and inference mode, autocast and its dtypes, profiler, dispatch keys, and the
// CPU's treatment of denormals. A new thread has none of these.
//   const ThreadState state = ThreadState::capture();  // in the caller
//   state.apply();                                     // in the worker
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
  /// The same where the thread has other modes, dtypes, dispatch keys or hooks
  /// now, which is cheaper to see than `apply` is.
  void restore() const;

 private:
  struct Signs;
  std::shared_ptr<const at::ThreadLocalState> state_ = {};
  std::shared_ptr<const Signs> signs_ = {};
};

} // namespace lockstep
