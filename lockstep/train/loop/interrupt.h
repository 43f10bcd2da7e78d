// SPDX-License-Identifier: BSD-3-Clause
//
// Ctrl-C and SIGTERM while training: the first asks the trainer to stop after
// the current step, the second ends the program at once.
//   InterruptGuard guard;
//   while (!guard.signal()) { step(); }
#pragma once

#include <csignal>

namespace lockstep::train {

/// Catches SIGINT and SIGTERM while it lives and puts the old handlers back;
/// one that is ignored stays so. One at a time per process, as signal handlers
/// are.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The first signal received, or 0. Threads: any.
  [[nodiscard]] int signal() const noexcept;

 private:
  struct sigaction old_int_ = {};
  struct sigaction old_term_ = {};
};

} // namespace lockstep::train
