// SPDX-License-Identifier: BSD-3-Clause
//
// Batch norms of a graph with what follows them: `relu(bn(x))` and
// `relu(bn(x) + y)` become one step, which Lockstep's batch norms compute in
// the same passes through memory (tensor/norm_relu.h).
#pragma once

#include <memory>

#include "lockstep/program/internal/block.h"

namespace lockstep::program {

/// `block` with these steps joined; null if there are none. A norm runs where
/// its ReLU was, so nothing between the two may change a value in place, and
/// none but norms may read its statistics. `block`: without marks of last uses.
std::shared_ptr<Block> join_norms(const Block& block);

} // namespace lockstep::program
