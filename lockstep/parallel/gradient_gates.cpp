// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/gradient_gates.h"

#include <map>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/base/error.h"
#include "lockstep/tensor/compat.h"

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

class Gate final : public autograd::Node {
 public:
  explicit Gate(autograd::Edge end)
      : Node(autograd::edge_list{std::move(end)}) {}

  std::string name() const override {
    return "LockstepGate";
  }
  autograd::variable_list apply(autograd::variable_list&& grads) override {
    return std::move(grads);
  }
};

// Where the gradient of a shard arrives; the join node takes it from there.
class InputGate final : public autograd::Node {
 public:
  InputGate() : Node(autograd::edge_list{}) {}

  std::string name() const override {
    return "LockstepInputGate";
  }
  autograd::variable_list apply(autograd::variable_list&& /*grads*/) override {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "parallel.forward",
         .message =
             "a backward pass inside forward reached an input of the module",
         .hint = "call backward on the result, or detach the input first"});
  }
};

// The gates of one pass, by the input of a node that they stand before.
class Gates {
 public:
  /// Makes a gate before `end`, a leaf's or a computed tensor's, and leads
  /// `end` to it.
  void add(autograd::Edge& end, const at::Tensor& tensor) {
    autograd::Edge& gate = gates_[{end.function.get(), end.input_nr}];
    if (!gate.is_valid()) {
      gate = gate_before(end, tensor);
    }
    end = gate;
  }

  /// Leads an edge to the gate before its end, if there is one.
  void redirect(autograd::Edge& edge) const {
    const auto gate = gates_.find({edge.function.get(), edge.input_nr});
    if (gate != gates_.end()) {
      edge = gate->second;
    }
  }

 private:
  std::map<std::pair<const autograd::Node*, std::uint32_t>, autograd::Edge>
      gates_ = {};
};

} // namespace

autograd::Edge gate_before(autograd::Edge end, const at::Tensor& tensor) {
  auto gate = make_node<Gate>(std::move(end));
  const std::uint32_t place = gate->add_input_metadata(tensor);
  return {std::move(gate), place};
}

void set_gates(ReplicaPass& pass) {
  Gates gates;
  for (GraphExit& exit : pass.exits) {
    gates.add(exit.edge, exit.leaf);
  }
  for (Stranger& stranger : pass.strangers) {
    stranger.gate = stranger.edge;
    gates.add(stranger.gate, stranger.leaf);
  }
  for (const Joint& joint : pass.joints) {
    gates.redirect(joint.node->next_edges()[joint.place]);
  }
  for (autograd::Edge& root : pass.roots) {
    gates.redirect(root);
  }
}

at::Tensor gated_input(const at::Tensor& shard, bool is_leaf) {
  at::Tensor input = shard.variable_data();
  if (is_leaf) {
    input.set_requires_grad(true);
    return input;
  }
  auto gate = make_node<InputGate>();
  gate->add_input_metadata(input);
  autograd::impl::set_gradient_edge(input, {std::move(gate), 0});
  return input;
}

} // namespace lockstep::parallel
