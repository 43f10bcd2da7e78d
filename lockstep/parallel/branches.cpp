// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/branches.h"

#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/engine.h>

namespace lockstep::parallel {

namespace autograd = torch::autograd;

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
