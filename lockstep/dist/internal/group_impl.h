// SPDX-License-Identifier: BSD-3-Clause
//
// c10d behind `ProcessGroup`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

struct ProcessGroup::Impl {
  c10::intrusive_ptr<c10d::Store> store = {};
  c10::intrusive_ptr<c10d::ProcessGroup> group = {};
  std::chrono::milliseconds timeout = {};
  bool has_python_ranks = false;
  /// Collectives of ours so far, this one included.
  std::uint64_t collectives = 0;
  /// Wrappers made so far: names of their keys in the store.
  std::uint64_t wrappers = 0;

  /// Runs a collective; c10d's errors become ours, with its name and number.
  void collective(std::string_view name, const std::function<void()>& run);
};

namespace internal {

/// A group over `store`, named as Python names its default group, so that ranks
/// of both languages meet.
ProcessGroup make_group(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const InitOptions& options);

/// Gives every rank the texts of all ranks, through the store. Rank 0 returns
/// when all have read them, so that it may end then, and the store with it.
/// Errors: throws kTimeout that names the ranks whose text did not come,
/// kUnavailable if the store has ended.
std::vector<std::string> exchange(
    ProcessGroup::Impl& impl,
    const std::string& key,
    const std::string& text);

} // namespace internal
} // namespace lockstep::dist
