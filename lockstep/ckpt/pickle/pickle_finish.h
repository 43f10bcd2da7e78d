// SPDX-License-Identifier: BSD-3-Clause
//
// What is left to do when a pickle was read: cut cycles, check the nesting,
// keep the last of equal dict keys as Python does. Cycles outside the tree die.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Addresses of values.
using SharedNodes = std::unordered_set<const void*>;

/// Containers that a pickle used again. Every cycle goes through one of them.
class ReusedNodes {
 public:
  ReusedNodes() = default;
  /// Empties those that were not released: they may hold themselves.
  ~ReusedNodes();
  ReusedNodes(const ReusedNodes&) = delete;
  ReusedNodes& operator=(const ReusedNodes&) = delete;

  void note(const Value& value);
  /// `nodes` are in no cycle: they are left to the caller.
  void release(const SharedNodes& nodes);

 private:
  std::unordered_map<const void*, Value> nodes_;
};

/// Makes a tree of `root`, which nobody else may own. Returns what in it has
/// several owners. Errors: kUnsafe (E_DEPTH).
Result<SharedNodes> finish_tree(Value& root, std::uint64_t max_depth);

} // namespace lockstep::ckpt
