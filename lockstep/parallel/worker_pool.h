// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that live as long as the pool, one per replica. A job hands task(i)
// to thread i, always the same i to the same thread, under the caller's
// thread-local state, and returns when all tasks have ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/device/thread_state.h"

namespace lockstep::parallel {

/// Persistent workers. Move and copy are deleted: threads point into it.
class WorkerPool {
 public:
  using Task = std::function<void(std::size_t)>;

  /// Starts `size` threads; each computes with `intra_op_threads` threads of
  /// its own (with 1 it never makes an OpenMP team). Returns when all are
  /// ready; the caller's own thread count stays as it was.
  WorkerPool(std::size_t size, int intra_op_threads);
  /// Waits for the threads to end. Not to be called from one of them.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  [[nodiscard]] std::size_t size() const noexcept {
    return workers_.size();
  }

  /// Runs task(0) .. task(count - 1) at the same time and waits for all.
  /// Returns what task i threw in place i, null if nothing.
  /// Threads: jobs of several callers run one after the other; calling it from
  /// a task of the same pool would never end.
  std::vector<std::exception_ptr> run(std::size_t count, const Task& task);

 private:
  // One cache line each: a worker waits on its own ticket only.
  struct alignas(64) Worker {
    std::atomic<std::uint32_t> ticket{0};
    std::exception_ptr error = {};
    std::jthread thread = {};
  };

  void loop(std::size_t index, int intra_op_threads);
  void finish_one();

  std::vector<Worker> workers_;
  std::mutex callers_;
  std::atomic<std::uint32_t> pending_{0};
  std::atomic<bool> stop_{false};
  const Task* task_ = nullptr;
  ThreadState state_ = {};
};

} // namespace lockstep::parallel
