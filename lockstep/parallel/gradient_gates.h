// SPDX-License-Identifier: BSD-3-Clause
//
// Where the graphs of replicas end.
//
// Note [Gates]
// A replica's backward pass ends before the accumulators of parameters and
// other leaves: the join node hands the sum over replicas on to them. If the
// engine stopped at an accumulator itself, it would call the tensor's hooks,
// which have to see the sum, once. So after forward every edge of the replica's
// graph that leads to such an end leads to a node of ours before it, where the
// replica's pass picks the gradient up. A gate that is reached in any other way
// hands the gradient on.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "lockstep/parallel/replica_pass.h"

namespace lockstep::parallel {

/// A gate of its own before `end`, where the gradient of `tensor` goes.
torch::autograd::Edge gate_before(
    torch::autograd::Edge end,
    const at::Tensor& tensor);

/// Sets gates before all exits and strangers of `pass`, once its graph is
/// known; their edges, and roots that are ends, are those of the gates then.
/// Threads: none may use the graph meanwhile.
void set_gates(ReplicaPass& pass);

/// A shard as the beginning of a replica's own graph, with `shard`'s memory and
/// a version count of its own. Like the caller's tensor it may be changed in
/// place, unless `is_leaf`. Pick its gradient up at `gradient_edge` of the
/// result.
at::Tensor gated_input(const at::Tensor& shard, bool is_leaf);

} // namespace lockstep::parallel
