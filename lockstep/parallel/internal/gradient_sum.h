// SPDX-License-Identifier: BSD-3-Clause
//
// Adds the replicas' gradients, always g0 + g1 + ... in replica order, element
// by element, so that no result depends on timing. Each worker sums its own
// slice of all parameters. NCCL, if asked for, has an order of its own.
#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/parallel/internal/nccl_reduce.h"
#include "lockstep/parallel/internal/worker_pool.h"
#include "lockstep/parallel/replica_group.h"

namespace lockstep::parallel {

/// The sum over replicas of each row; `gradients[replica][row]` is consumed.
/// Undefined gradients count as zero; a row without any stays undefined.
/// Memory: sums into the buffer of the first gradient of a row if nothing else
/// refers to it, else into a copy.
/// Threads: those of `pool`; the caller's alone if it is null.
std::vector<at::Tensor> sum_in_replica_order(
    WorkerPool* pool,
    std::vector<std::vector<at::Tensor>> gradients);

/// Where gradients are and what may sum them.
struct GradientSum {
  WorkerPool& pool;
  std::span<const c10::Device> devices;
  Traffic& traffic;
  /// Null: copies to the first device, and sums there in replica order.
  NcclReduce* nccl = nullptr;
};

/// As `sum_in_replica_order` for gradients[replica] on its device; the sums are
/// on the first. NCCL takes the rows that it can if all replicas have some;
/// what it moves counts as one transfer per gradient.
std::vector<at::Tensor> sum_on_first_device(
    const GradientSum& with,
    std::vector<std::vector<at::Tensor>> gradients);

} // namespace lockstep::parallel
