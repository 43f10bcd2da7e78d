// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as threads of one process: distributed code is tested without a
// launcher.
//   const auto errors = dist::run_thread_ranks(2, [](const ProcessGroup& group)
//   {
//     DistributedDataParallel model(net(), {.process_group = group});
//     ...
//   });
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/distributed/process_group.h"

namespace lockstep::dist {

/// Calls `body` in `size` threads at once, each with its own rank's group, and
/// returns when all have ended. The default group stays as it is.
/// Returns what each rank has thrown, as text, by rank; "" where nothing was.
/// `options` may name the backend, the timeout.
inline std::vector<std::string> run_thread_ranks(
    int size,
    const std::function<void(const ProcessGroup& group)>& body,
    const InitOptions& options = {}) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  threads.reserve(errors.size());
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(internal::make_group(store, rank, size, options));
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  threads.clear(); // joins
  return errors;
}

} // namespace lockstep::dist
