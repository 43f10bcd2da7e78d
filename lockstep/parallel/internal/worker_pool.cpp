// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/worker_pool.h"

#include <system_error>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/util/thread_name.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"
#include "lockstep/parallel/replica_group.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace lockstep::parallel {
namespace {

using Clock = std::chrono::steady_clock;

// Note [Waiting]
constexpr std::chrono::microseconds kAwake{100};

void pause() {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

// Waits until `word` is not `old`, awake for a while, then asleep.
void wait_while(
    const std::atomic<std::uint32_t>& word,
    std::uint32_t old,
    std::chrono::nanoseconds awake) {
  constexpr int kLooksPerYield = 64;
  if (awake.count() > 0) {
    const Clock::time_point end = Clock::now() + awake;
    do {
      for (int i = 0; i < kLooksPerYield; ++i) {
        if (word.load() != old) {
          return;
        }
        pause();
      }
      std::this_thread::yield();
    } while (Clock::now() < end);
  }
  word.wait(old);
}

// Says so if the exception that is being handled came from the system.
[[noreturn]] void raise_no_thread(std::size_t replica, std::size_t size) {
  try {
    throw;
  } catch (const std::system_error& error) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "parallel.workers",
         .message = format(
             "no thread for replica {} of {}: {}",
             replica,
             size,
             error.code().message()),
         .hint = "look at ulimit -u and the container's limit of processes"});
  }
}

} // namespace

thread_local const WorkerPool::Inside* WorkerPool::inside = nullptr;

WorkerPool::WorkerPool(std::size_t size, int intra_op_threads)
    : intra_op_threads_(intra_op_threads),
      uses_caller_(IntraOpThreadsGuard::is_available()),
      workers_(size) {
  // With more threads than cores, one that stays awake takes a core from one
  // that has work.
  const std::size_t busy = size * static_cast<std::size_t>(intra_op_threads);
  if (uses_caller_ && std::cmp_less_equal(busy, usable_cores())) {
    awake_ = kAwake;
  }
  const int callers_threads = at::get_num_threads();
  for (std::size_t i = uses_caller_ ? 1 : 0; i < size; ++i) {
    try {
      start(i);
    } catch (...) {
      stop();
      at::set_num_threads(callers_threads);
      raise_no_thread(i, size);
    }
  }
  // A worker's call also changed what later threads start with.
  at::set_num_threads(callers_threads);
}

// Returns when the thread is ready: one after the other, for set_num_threads
// touches pools shared by all threads.
void WorkerPool::start(std::size_t index) {
  pending_.store(1);
  workers_[index].thread = std::jthread([this, index] { loop(index); });
  pending_.wait(1);
}

WorkerPool::~WorkerPool() {
  stop();
}

void WorkerPool::stop() {
  stop_.store(true);
  for (Worker& worker : workers_) {
    worker.offer.fetch_add(1);
    worker.offer.notify_one();
  }
}

// Task `index` is done by one thread: its own, or the caller's.
bool WorkerPool::take(std::size_t index) {
  std::uint32_t offer = workers_[index].offer.load();
  return offer % 2 == 1 &&
         workers_[index].offer.compare_exchange_strong(offer, offer + 1);
}

void WorkerPool::finish_one() {
  if (pending_.fetch_sub(1) == 1) {
    pending_.notify_one();
  }
}

void WorkerPool::check_outside() const {
  for (const Inside* link = inside; link != nullptr; link = link->outer) {
    if (link->pool == this) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "parallel.workers",
           .message =
               "called inside a replica of its own, which would wait for "
               "itself",
           .hint = "a module must not call the DataParallel that runs it; call "
                   "its layers"});
    }
  }
}

void WorkerPool::perform(std::size_t index) {
  const Inside here{.pool = this, .outer = callers_inside_};
  const Inside* const before = std::exchange(inside, &here);
  try {
    state_.apply(); // a task before it in this thread may have changed it
    (*task_)(index);
  } catch (...) {
    workers_[index].error = std::current_exception();
  }
  inside = before;
}

void WorkerPool::loop(std::size_t index) {
  Worker& worker = workers_[index];
  c10::setThreadName(format("replica {}", index));
  // LibTorch copies the process's number into a thread at its first question,
  // also over a number that the thread set before: ask first.
  static_cast<void>(at::get_num_threads());
  at::set_num_threads(intra_op_threads_);
  const ThreadState idle = ThreadState::capture();
  finish_one();
  while (true) {
    const std::uint32_t seen = worker.offer.load();
    if (seen % 2 == 0) {
      wait_while(worker.offer, seen, awake_);
    } else if (stop_.load()) {
      return;
    } else if (take(index)) {
      perform(index);
      finish_one();
      idle.apply();
    }
  }
}

std::vector<std::exception_ptr> WorkerPool::run(
    std::size_t count,
    const Task& task) {
  check_outside();
  const std::lock_guard lock(callers_);
  callers_inside_ = inside;
  const std::size_t first = uses_caller_ && count > 0 ? 1 : 0;
  state_ = ThreadState::capture();
  task_ = &task;
  pending_.store(static_cast<std::uint32_t>(count - first));
  for (std::size_t i = first; i < count; ++i) {
    workers_[i].offer.fetch_add(1);
    workers_[i].offer.notify_one();
  }
  if (first > 0) {
    const IntraOpThreadsGuard threads(intra_op_threads_);
    perform(0);
    for (std::size_t i = first; i < count; ++i) {
      if (take(i)) {
        perform(i);
        finish_one();
      }
    }
  }
  for (std::uint32_t left = pending_.load(); left != 0;
       left = pending_.load()) {
    wait_while(pending_, left, awake_);
  }
  std::exchange(state_, {}).apply();
  std::vector<std::exception_ptr> errors(count);
  for (std::size_t i = 0; i < count; ++i) {
    errors[i] = std::exchange(workers_[i].error, nullptr);
  }
  return errors;
}

} // namespace lockstep::parallel
