// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/connected_graph.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/tensor/internal/compat.h"
#include "lockstep/tensor/structure.h"

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

// Stands for the copy of the masters' values to a replica. It keeps nothing of
// a pass, so all passes share it. Its own operations are differentiable: they
// are recorded where the caller asks for gradients of gradients.
class SendNode final : public autograd::Node {
 public:
  SendNode(c10::Device home, autograd::edge_list next_edges)
      : Node(std::move(next_edges)), home_(home) {}

  std::string name() const override {
    return "LockstepSendBackward";
  }
  autograd::variable_list apply(autograd::variable_list&& grads) override {
    for (at::Tensor& grad : grads) {
      if (grad.defined()) {
        grad = grad.to(home_);
      }
    }
    return std::move(grads);
  }

 private:
  c10::Device home_;
};

} // namespace

void connect(
    std::span<const ParameterRow> parameters,
    std::size_t replica,
    c10::Device home) {
  autograd::edge_list edges;
  TensorList leaves;
  for (const ParameterRow& row : parameters) {
    if (!row.master.requires_grad()) {
      continue;
    }
    for (const at::Tensor& leaf : row.leaves[replica]) {
      edges.push_back(autograd::impl::gradient_edge(row.master));
      leaves.push_back(leaf);
    }
  }
  const auto node = make_node<SendNode>(home, std::move(edges));
  for (const at::Tensor& leaf : leaves) {
    const std::uint32_t place = node->add_input_metadata(leaf);
    autograd::impl::set_gradient_edge(leaf, {node, place});
  }
}

} // namespace lockstep::parallel
