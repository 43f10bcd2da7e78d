// SPDX-License-Identifier: BSD-3-Clause
//
// What one replica's forward left behind, and which parameters it used. The
// caller's graph leads to these only: as on one device, hooks of an unused
// parameter are not called, and backward does not visit it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include "lockstep/parallel/replica_set.h"
#include "lockstep/parallel/scatter_gather.h"

namespace lockstep::parallel {

/// One place where a parameter's gradient leaves a replica's graph.
struct GraphExit {
  torch::autograd::Edge edge = {};
  /// Of the parameter, in `ReplicaSet::parameters()`.
  std::size_t row = 0;
};

/// One replica's part of a pass.
struct ReplicaPass {
  /// The shards it was given; leaves of its graph where gradients are wanted.
  TensorList inputs = {};
  /// Results, with the replica's graph.
  TensorList outputs = {};
  /// Where that graph ends in parameters.
  std::vector<GraphExit> exits = {};
};

/// The exits of replica `replica`'s parameters that the graph of `outputs`
/// leads to, in the order of `rows`; none without gradients.
std::vector<GraphExit> find_exits(
    const TensorList& outputs,
    std::span<const ParameterRow> rows,
    std::size_t replica);

/// The master of each row that any of `passes` used; undefined for the others.
TensorList used_masters(
    std::span<const ReplicaPass> passes,
    std::span<const ParameterRow> rows);

/// True if a replica's result `output` has a graph.
bool any_requires_grad(std::span<const ReplicaPass> passes, std::size_t output);

} // namespace lockstep::parallel
