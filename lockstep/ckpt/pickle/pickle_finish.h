// SPDX-License-Identifier: BSD-3-Clause
//
// What is left to do when a pickle was read: cut cycles, check the nesting,
// keep the last of equal dict keys as Python does.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Addresses of values.
using SharedNodes = std::unordered_set<const void*>;

/// Makes a tree of `root`, which nobody else may own. Returns what in it has
/// several owners. Errors: kUnsafe (E_DEPTH).
Result<SharedNodes> finish_tree(Value& root, std::uint64_t max_depth);

} // namespace lockstep::ckpt
