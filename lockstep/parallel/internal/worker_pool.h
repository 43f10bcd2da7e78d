// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that live as long as the pool, for replicas that compute at the same
// time. A job offers task(i) to thread i and runs task(0) in the caller's, all
// under the caller's thread-local state. It returns when all tasks have ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/device/internal/thread_state.h"

namespace lockstep::parallel {

/// Note [Waiting]
/// Waking a thread that sleeps costs more than a small net's whole forward
/// pass, and on a busy machine a woken thread gets a core milliseconds later.
/// So nobody waits for a thread that has not begun:
/// - A pool of R has R - 1 threads of its own; the caller's runs task 0, and
///   then each other task that its thread has not taken yet.
/// - A thread without work looks for the next job for 100 us, a little more
///   than the caller's own part of a small step, then it sleeps. Between two
///   looks it yields: a busy machine loses nothing to it.
/// The caller's number of intra-op threads is another than the replicas'; where
/// it cannot be set for one thread (replica_group.h) the pool has R threads
/// and the caller waits.

/// Note [Inside a pool]
/// A task that gave its own pool another job would wait for itself. Each thread
/// knows the pools whose tasks it is inside of, also those of the callers that
/// wait for it, and such a job is refused.

/// Persistent workers. Move and copy are deleted: threads point into it.
class WorkerPool {
 public:
  using Task = std::function<void(std::size_t)>;

  /// For jobs of up to `size` tasks, each computing with `intra_op_threads`
  /// threads of its own (with 1 it never makes an OpenMP team). Returns when
  /// all threads are ready; the caller's own number stays as it was.
  /// Errors: throws kUnavailable if the system gives no more threads.
  WorkerPool(std::size_t size, int intra_op_threads);
  /// Waits for the threads to end. Not to be called from one of them.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// How many tasks can run at the same time.
  [[nodiscard]] std::size_t size() const noexcept {
    return workers_.size();
  }

  /// Threads inside one operation of one task.
  [[nodiscard]] int intra_op_threads() const noexcept {
    return intra_op_threads_;
  }

  /// Runs task(0) .. task(count - 1), offered in this order, and waits for all;
  /// the caller's thread is afterwards as it was. Tasks may wait for those
  /// before them. Returns what task i threw in place i, null if nothing.
  /// Threads: jobs of several callers run one after the other.
  /// Errors: throws as `check_outside`.
  std::vector<std::exception_ptr> run(std::size_t count, const Task& task);

  /// Errors: throws kInvalidArgument in a task of this pool, or in one that
  /// such a task waits for: Note [Inside a pool].
  void check_outside() const;

 private:
  // One link of the chain of pools that a thread is inside of.
  struct Inside {
    const WorkerPool* pool = nullptr;
    const Inside* outer = nullptr;
  };

  // One cache line each: a worker waits on its own offer only. The first has no
  // thread if the caller's does its work.
  struct alignas(64) Worker {
    // Odd: a task waits to be taken.
    std::atomic<std::uint32_t> offer{0};
    std::exception_ptr error = {};
    std::jthread thread = {};
  };

  void start(std::size_t index);
  void loop(std::size_t index);
  bool take(std::size_t index);
  void perform(std::size_t index);
  void finish_one();
  void stop();

  static thread_local const Inside* inside;

  int intra_op_threads_ = 1;
  bool uses_caller_ = false;
  // How long a thread waits awake before it sleeps.
  std::chrono::nanoseconds awake_{0};
  std::mutex callers_;
  alignas(64) std::atomic<std::uint32_t> pending_{0};
  std::atomic<bool> stop_{false};
  const Task* task_ = nullptr;
  // Of the caller, who waits until the job has ended.
  const Inside* callers_inside_ = nullptr;
  ThreadState state_ = {};
  // Last: its threads use what stands above until they end.
  std::vector<Worker> workers_;
};

} // namespace lockstep::parallel
