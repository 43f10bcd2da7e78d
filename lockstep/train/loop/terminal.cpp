// SPDX-License-Identifier: BSD-3-Clause
//
// What a program in a terminal gives its trainer.
#include <unistd.h>

#include <memory>

#include "lockstep/report/console.h"
#include "lockstep/report/console_log.h"
#include "lockstep/train/observers/line_observer.h"
#include "lockstep/train/run/interrupt.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {

LogSink& console_log() {
  static report::Console console(STDERR_FILENO);
  static report::ConsoleLog log(console, LogLevel::kInfo, /*file=*/nullptr);
  return log;
}

std::shared_ptr<Observer> console_lines(std::int64_t log_interval) {
  return std::make_shared<LineObserver>(console_log(), log_interval);
}

std::function<bool()> stop_on_signals() {
  return [guard = std::make_shared<const InterruptGuard>()] {
    return guard->signal() != 0;
  };
}

} // namespace lockstep::train
