// SPDX-License-Identifier: BSD-3-Clause
//
// Where the graphs of replicas end.
//
// Note [Gates]
// Replica 0 computes with the module's own parameters. Its backward pass must
// not call their hooks, which have to see the sum over replicas, once. So while
// its forward runs, a node of ours stands before each parameter's accumulator:
// operations find it there and end in it. The replica's pass picks gradients up
// at these gates and goes no further; a gate that is reached in any other way
// (a backward inside forward, another thread's graph over the same parameter)
// hands the gradient on to the accumulator.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "lockstep/parallel/replica_set.h"

namespace lockstep::parallel {

/// How LibTorch holds a node of a graph.
using NodePtr = decltype(torch::autograd::Edge::function);

/// Sets gates before the accumulators of the rows' masters while it lives.
/// Graphs that are recorded meanwhile keep them. Does nothing with gradients
/// off. Threads: graphs may be recorded over the same masters in others.
class GradientGates {
 public:
  explicit GradientGates(std::span<const ParameterRow> rows);
  ~GradientGates();
  GradientGates(const GradientGates&) = delete;
  GradientGates& operator=(const GradientGates&) = delete;

 private:
  std::vector<std::pair<at::Tensor, NodePtr>> gates_;
};

/// A shard as the beginning of a replica's own graph, with `shard`'s memory and
/// a version count of its own. Like the caller's tensor it may be changed in
/// place, unless `is_leaf`. Pick its gradient up at `gradient_edge` of the
/// result.
at::Tensor gated_input(const at::Tensor& shard, bool is_leaf);

} // namespace lockstep::parallel
