// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that one part of a program owns and lends to another, so that the
// machine is not shared by two pools.
//   optimizer.use_workers(model->group().workers());
#pragma once

#include <cstddef>
#include <functional>

namespace lockstep {

/// Borrowed threads; without `run` there are none and the caller works alone.
struct Workers {
  using Task = std::function<void(std::size_t)>;
  /// How many tasks can run at the same time.
  std::size_t count = 1;
  /// Runs task(0) .. task(tasks - 1), `tasks` <= `count`, at the same time,
  /// some of them perhaps in the calling thread, and waits for all. Errors:
  /// rethrows what the lowest failing task threw.
  std::function<void(std::size_t tasks, const Task& task)> run = {};
};

} // namespace lockstep
