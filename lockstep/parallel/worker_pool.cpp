// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/worker_pool.h"

#include <utility>

#include <ATen/Parallel.h>

namespace lockstep::parallel {

WorkerPool::WorkerPool(std::size_t size, int intra_op_threads)
    : workers_(size) {
  const int callers_threads = at::get_num_threads();
  for (std::size_t i = 0; i < size; ++i) {
    // One after the other: set_num_threads touches pools shared by all threads.
    pending_.store(1);
    workers_[i].thread = std::jthread(
        [this, i, intra_op_threads] { loop(i, intra_op_threads); });
    pending_.wait(1);
  }
  // A worker's call also changed what later threads start with.
  at::set_num_threads(callers_threads);
}

WorkerPool::~WorkerPool() {
  stop_.store(true);
  for (Worker& worker : workers_) {
    worker.ticket.fetch_add(1);
    worker.ticket.notify_one();
  }
}

void WorkerPool::finish_one() {
  if (pending_.fetch_sub(1) == 1) {
    pending_.notify_one();
  }
}

void WorkerPool::loop(std::size_t index, int intra_op_threads) {
  Worker& worker = workers_[index];
  // LibTorch copies the process's number into a thread at its first question,
  // also over a number that the thread set before: ask first.
  static_cast<void>(at::get_num_threads());
  at::set_num_threads(intra_op_threads);
  std::uint32_t done = worker.ticket.load();
  finish_one();
  while (true) {
    worker.ticket.wait(done);
    ++done;
    if (stop_.load()) {
      return;
    }
    try {
      const ThreadStateGuard guard(state_);
      (*task_)(index);
    } catch (...) {
      worker.error = std::current_exception();
    }
    finish_one();
  }
}

std::vector<std::exception_ptr> WorkerPool::run(
    std::size_t count,
    const Task& task) {
  const std::lock_guard lock(callers_);
  state_ = ThreadState::capture();
  task_ = &task;
  pending_.store(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    workers_[i].error = nullptr;
    workers_[i].ticket.fetch_add(1);
    workers_[i].ticket.notify_one();
  }
  for (std::uint32_t left = pending_.load(); left != 0;
       left = pending_.load()) {
    pending_.wait(left);
  }
  std::vector<std::exception_ptr> errors(count);
  for (std::size_t i = 0; i < count; ++i) {
    errors[i] = std::exchange(workers_[i].error, nullptr);
  }
  return errors;
}

} // namespace lockstep::parallel
