// SPDX-License-Identifier: BSD-3-Clause
//
// Adds the replicas' gradients, always g0 + g1 + ... in replica order, element
// by element, so that no result depends on timing. Each worker sums its own
// slice of all parameters.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/parallel/worker_pool.h"

namespace lockstep::parallel {

/// The sum over replicas of each row; `gradients[replica][row]` is consumed.
/// Undefined gradients count as zero; a row without any stays undefined.
/// Memory: sums into the buffer of the first gradient of a row if nothing else
/// refers to it, else into a copy.
std::vector<at::Tensor> sum_in_replica_order(
    WorkerPool& pool,
    std::vector<std::vector<at::Tensor>> gradients);

} // namespace lockstep::parallel
