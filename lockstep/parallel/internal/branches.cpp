// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/branches.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/engine.h>

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

// Exits to parameters and to strangers; how many edges those take.
std::size_t add_leaf_exits(
    std::vector<Branch>& branches,
    std::vector<ReplicaPass>& passes,
    const std::vector<std::size_t>& edge_of,
    std::size_t edge) {
  for (std::size_t r = 0; r < branches.size(); ++r) {
    for (GraphExit& exit : passes[r].exits) {
      branches[r].exits.push_back(
          {.edge = std::move(exit.edge), .place = edge_of[exit.row]});
    }
  }
  for (const autograd::Edge& stranger : all_strangers(passes)) {
    for (std::size_t r = 0; r < branches.size(); ++r) {
      for (const Stranger& own : passes[r].strangers) {
        if (own.edge == stranger) {
          branches[r].exits.push_back({.edge = own.gate, .place = edge});
        }
      }
    }
    ++edge;
  }
  return edge;
}

// Exits to shards that take gradients.
void add_input_exits(
    std::vector<Branch>& branches,
    const std::vector<ReplicaPass>& passes,
    std::size_t edge) {
  for (std::size_t i = 0; i < passes.front().inputs.size(); ++i) {
    if (!passes.front().input_edges[i].is_valid()) {
      continue;
    }
    for (std::size_t r = 0; r < branches.size(); ++r) {
      branches[r].exits.push_back(
          {.edge = passes[r].input_edges[i], .place = edge});
      branches[r].inputs.emplace_back(edge, passes[r].inputs[i].detach());
    }
    ++edge;
  }
}

} // namespace

BranchPlan make_branches(
    std::vector<ReplicaPass>& passes,
    const TensorList& used) {
  BranchPlan plan;
  plan.branches.resize(passes.size());
  std::vector<std::size_t> edge_of(used.size());
  for (std::size_t row = 0; row < used.size(); ++row) {
    if (used[row].defined()) {
      edge_of[row] = plan.parameter_edges++;
    }
  }
  plan.leaf_edges =
      add_leaf_exits(plan.branches, passes, edge_of, plan.parameter_edges);
  add_input_exits(plan.branches, passes, plan.leaf_edges);
  for (std::size_t r = 0; r < passes.size(); ++r) {
    plan.branches[r].outputs = std::move(passes[r].outputs);
    plan.branches[r].roots = std::move(passes[r].roots);
  }
  return plan;
}

std::vector<TensorList> run_branches(
    std::span<const Branch> branches,
    std::span<const TensorList> grads,
    const std::vector<bool>& needed,
    bool keep_graph) {
  std::vector<TensorList> results(branches.size(), TensorList(needed.size()));
  autograd::edge_list roots;
  autograd::edge_list exits;
  autograd::variable_list seeds;
  std::vector<at::Tensor*> slots;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    bool has_root = false;
    for (std::size_t k = 0; k < grads[b].size(); ++k) {
      if (grads[b][k].defined()) {
        roots.push_back(branches[b].roots[k]);
        seeds.push_back(grads[b][k]);
        has_root = true;
      }
    }
    for (const BranchExit& exit : branches[b].exits) {
      if (has_root && needed[exit.place]) {
        exits.push_back(exit.edge);
        slots.push_back(&results[b][exit.place]);
      }
    }
  }
  // Without exits the engine would accumulate into .grad instead.
  if (exits.empty()) {
    return results;
  }
  auto captured = autograd::Engine::get_default_engine().execute(
      roots,
      seeds,
      keep_graph,
      /*create_graph=*/false,
      /*accumulate_grad=*/false,
      exits);
  for (std::size_t i = 0; i < exits.size(); ++i) {
    if (!slots[i]->defined()) {
      *slots[i] = std::move(captured[i]);
    } else if (captured[i].defined()) {
      *slots[i] = *slots[i] + captured[i];
    }
  }
  return results;
}

} // namespace lockstep::parallel
