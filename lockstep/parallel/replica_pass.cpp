// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/replica_pass.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

using Nodes = std::unordered_set<const autograd::Node*>;

// Where the graph begins. Its nodes live as long as these: of an output that is
// a parameter itself, nothing else holds the node.
autograd::edge_list roots_of(const TensorList& outputs) {
  autograd::edge_list roots;
  for (const at::Tensor& output : outputs) {
    if (output.defined() && output.requires_grad()) {
      roots.push_back(autograd::impl::gradient_edge(output));
    }
  }
  return roots;
}

Nodes reached_from(const autograd::edge_list& roots) {
  Nodes nodes;
  std::vector<const autograd::Node*> open;
  const auto visit = [&](const autograd::Edge& edge) {
    if (edge.is_valid() && nodes.insert(edge.function.get()).second) {
      open.push_back(edge.function.get());
    }
  };
  for (const autograd::Edge& root : roots) {
    visit(root);
  }
  while (!open.empty()) {
    const autograd::Node* node = open.back();
    open.pop_back();
    for (const autograd::Edge& next : node->next_edges()) {
      visit(next);
    }
  }
  return nodes;
}

// As impl::gradient_edge, but makes no node for a leaf that has none.
autograd::Edge known_edge(const at::Tensor& leaf) {
  if (leaf.grad_fn() != nullptr) {
    return autograd::impl::gradient_edge(leaf);
  }
  return {autograd::impl::try_get_grad_accumulator(leaf), 0};
}

} // namespace

std::vector<GraphExit> find_exits(
    const TensorList& outputs,
    std::span<const ParameterRow> rows,
    std::size_t replica) {
  std::vector<GraphExit> exits;
  const autograd::edge_list roots = roots_of(outputs);
  const Nodes nodes = reached_from(roots);
  if (nodes.empty()) {
    return exits;
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const at::Tensor& leaf : rows[row].leaves[replica]) {
      if (!leaf.requires_grad()) {
        continue;
      }
      autograd::Edge edge = known_edge(leaf);
      if (nodes.contains(edge.function.get())) {
        exits.push_back({.edge = std::move(edge), .row = row});
      }
    }
  }
  return exits;
}

TensorList used_masters(
    std::span<const ReplicaPass> passes,
    std::span<const ParameterRow> rows) {
  TensorList used(rows.size());
  for (const ReplicaPass& pass : passes) {
    for (const GraphExit& exit : pass.exits) {
      used[exit.row] = rows[exit.row].master;
    }
  }
  return used;
}

bool any_requires_grad(
    std::span<const ReplicaPass> passes,
    std::size_t output) {
  return std::ranges::any_of(passes, [output](const ReplicaPass& pass) {
    const at::Tensor& tensor = pass.outputs[output];
    return tensor.defined() && tensor.requires_grad();
  });
}

} // namespace lockstep::parallel
