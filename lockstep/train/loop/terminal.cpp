// SPDX-License-Identifier: BSD-3-Clause
//
// What a program in a terminal gives its trainer.
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <mutex>

#include "lockstep/base/rank_info.h"
#include "lockstep/report/console.h"
#include "lockstep/report/console_log.h"
#include "lockstep/train/loop/interrupt.h"
#include "lockstep/train/observers/line_observer.h"
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

namespace {

/// One guard for all functions that live: handlers are the process's.
struct SharedGuard {
  std::mutex mutex = {};
  std::unique_ptr<const InterruptGuard> guard = {};
  std::size_t users = 0;

  static SharedGuard& instance() {
    static auto* const shared = new SharedGuard(); // functions may live longer
    return *shared;
  }
};

void leave(const InterruptGuard* /*guard*/) {
  SharedGuard& shared = SharedGuard::instance();
  const std::scoped_lock lock(shared.mutex);
  if (--shared.users == 0) {
    shared.guard.reset();
  }
}

} // namespace

std::function<bool()> stop_on_signals() {
  SharedGuard& shared = SharedGuard::instance();
  const std::scoped_lock lock(shared.mutex);
  if (shared.guard == nullptr) {
    shared.guard = std::make_unique<const InterruptGuard>();
  }
  ++shared.users;
  const std::shared_ptr<const InterruptGuard> guard(shared.guard.get(), &leave);
  return [guard] { return guard->signal() != 0; };
}

} // namespace lockstep::train
