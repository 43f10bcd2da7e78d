// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

namespace lockstep::train {
namespace {

// Lock-free, so the handler may touch it.
std::atomic<int> received{0};

extern "C" void lockstep_note_interrupt(int number) {
  int expected = 0;
  if (received.compare_exchange_strong(expected, number)) {
    return;
  }
  // A second request: leave now. Only the bar's line needs an end; the
  // program never changes the terminal's modes.
  constexpr std::string_view kNewline = "\n";
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, kNewline.data(), kNewline.size());
  ::_exit(128 + number);
}

// `old`: what it did before. One that is ignored stays so, as nohup and scripts
// that start programs with `&` want it.
void take_signal(int number, struct sigaction& old) {
  ::sigaction(number, nullptr, &old);
  if (old.sa_handler == SIG_IGN) { // NOLINT(*-union-access): its interface
    return;
  }
  struct sigaction action = {};
  action.sa_handler = lockstep_note_interrupt;
  // Reads and writes go on; the loop looks at the flag.
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

} // namespace

InterruptGuard::InterruptGuard() {
  received = 0;
  take_signal(SIGINT, old_int_);
  take_signal(SIGTERM, old_term_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

int InterruptGuard::signal() const noexcept {
  return received.load();
}

} // namespace lockstep::train
