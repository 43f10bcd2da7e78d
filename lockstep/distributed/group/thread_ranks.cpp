// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/thread_ranks.h"

#include <exception>
#include <thread>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/distributed/group/group_impl.h"

namespace lockstep::dist {

std::vector<std::string> run_thread_ranks(
    int size,
    const std::function<void(const ProcessGroup& group)>& body,
    const InitOptions& options) {
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
