// SPDX-License-Identifier: BSD-3-Clause
//
// The number of threads inside one operation, for one thread and for a while.
// at::set_num_threads is for the process: it also resizes a pool, empties
// oneDNN's cache and changes what new threads start with. This goes to the
// runtimes below it, which keep a number per thread.
//   const IntraOpThreadsGuard guard(1);      // restored at its end
#pragma once

namespace lockstep::parallel {

/// Gives the calling thread a number of threads of its own while it lives;
/// `at::get_num_threads()` says it. Other threads keep theirs.
class IntraOpThreadsGuard {
 public:
  /// Whether this LibTorch's runtimes can do it: OpenMP's and, where LibTorch
  /// computes with it, MKL's are found by name and obey. Asked once.
  static bool is_available();

  /// Only where `is_available()`; `threads` is at least 1.
  explicit IntraOpThreadsGuard(int threads);
  ~IntraOpThreadsGuard();
  IntraOpThreadsGuard(const IntraOpThreadsGuard&) = delete;
  IntraOpThreadsGuard& operator=(const IntraOpThreadsGuard&) = delete;

 private:
  int saved_ = 0;
  /// 0 if the thread had none of its own.
  int saved_mkl_ = 0;
};

} // namespace lockstep::parallel
