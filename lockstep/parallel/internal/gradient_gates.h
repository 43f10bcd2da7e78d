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
// replica's pass picks the gradient up. Where that graph is part of a later
// pass, too, it ends in the same gates.
// A gate that is reached in any other way hands the gradient on; if that ends
// in a replica's own parameter, of which the caller knows nothing, accumulating
// it there is an error.
#pragma once

#include <cstddef>
#include <span>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "lockstep/parallel/internal/parameter_rows.h"
#include "lockstep/parallel/internal/replica_pass.h"

namespace lockstep::parallel {

/// A gate of its own before `end`, where the gradient of `tensor` goes.
torch::autograd::Edge gate_before(
    torch::autograd::Edge end,
    const at::Tensor& tensor);

/// True for a gate of any pass that stands before a leaf.
bool is_gate(const torch::autograd::Node& node);

/// True for the beginning of a graph that `gated_input` made.
bool is_input_gate(const torch::autograd::Node& node);

/// Sets gates before all exits and strangers of `pass`, once its graph is
/// known; their edges, and roots that are ends, are those of the gates then.
/// Threads: none may use the graph meanwhile.
void set_gates(ReplicaPass& pass);

/// A shard as the beginning of a replica's own graph, with `shard`'s memory and
/// a version count of its own. It may be changed in place. Pick its gradient up
/// at `gradient_edge` of the result.
at::Tensor gated_input(const at::Tensor& shard);

/// Makes it an error (kUnsupported, from the backward pass) to accumulate a
/// gradient into a parameter of replica `replica`, 1 or more.
void refuse_gradients(std::span<const ParameterRow> rows, std::size_t replica);

} // namespace lockstep::parallel
