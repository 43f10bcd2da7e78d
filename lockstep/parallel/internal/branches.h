// SPDX-License-Identifier: BSD-3-Clause
//
// The replicas' parts of a join node: where their graphs begin and end, and one
// call of the engine for some of them.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/internal/replica_pass.h"

namespace lockstep::parallel {

/// A place where a gradient leaves a replica's graph.
struct BranchExit {
  torch::autograd::Edge edge = {};
  /// Among the edges of the join node.
  std::size_t place = 0;
};

/// One replica's part.
struct Branch {
  TensorList outputs = {};
  /// Where the graph of each output begins.
  std::vector<torch::autograd::Edge> roots = {};
  std::vector<BranchExit> exits = {};
  /// Shards that take gradients, by edge of the join node: undefined gradients
  /// of some replicas become zeros of this shape.
  std::vector<std::pair<std::size_t, at::Tensor>> inputs = {};
};

/// The parts of all replicas. Edges of the join node lead to parameters, then
/// to strangers, from `parameter_edges` on, then to inputs, from `leaf_edges`
/// on.
struct BranchPlan {
  std::vector<Branch> branches = {};
  std::size_t parameter_edges = 0;
  std::size_t leaf_edges = 0;
};

/// Takes over the graphs of `passes`; `used` are the parameters that any of
/// them reaches (`used_masters`).
BranchPlan make_branches(
    std::vector<ReplicaPass>& passes,
    const TensorList& used);

/// Backward of `branches` in one call of the engine, from the gradients `grads`
/// of their outputs: one list per branch, by edge of the join node, where
/// `needed`. Graphs are freed unless `keep_graph`.
/// Errors: what their backward passes throw.
std::vector<TensorList> run_branches(
    std::span<const Branch> branches,
    std::span<const TensorList> grads,
    const std::vector<bool>& needed,
    bool keep_graph);

} // namespace lockstep::parallel
