// SPDX-License-Identifier: BSD-3-Clause
//
// What a program in a terminal gives its trainer.
#include <unistd.h>

#include <memory>
#include <mutex>

#include "lockstep/base/rank_info.h"
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
  if (job_rank().value().rank > 0) {
    return std::make_shared<Observer>();
  }
  return std::make_shared<LineObserver>(console_log(), log_interval);
}

std::function<bool()> stop_on_signals() {
  // One for all functions that live: handlers are the process's.
  static std::mutex mutex;
  static std::weak_ptr<const InterruptGuard> shared;
  const std::scoped_lock lock(mutex);
  auto guard = shared.lock();
  if (guard == nullptr) {
    guard = std::make_shared<const InterruptGuard>();
    shared = guard;
  }
  return [guard] { return guard->signal() != 0; };
}

} // namespace lockstep::train
