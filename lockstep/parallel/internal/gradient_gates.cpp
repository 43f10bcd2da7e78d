// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/gradient_gates.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/compat.h"

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

// As an AccumulateGrad's: the node belongs to no pass.
constexpr std::uint64_t kEndNumber = std::numeric_limits<std::uint64_t>::max();

class Gate final : public autograd::Node {
 public:
  explicit Gate(autograd::Edge end)
      : Node(kEndNumber, autograd::edge_list{std::move(end)}) {}

  std::string name() const override {
    return "LockstepGate";
  }
  autograd::variable_list apply(autograd::variable_list&& grads) override {
    return std::move(grads);
  }
};

// The join node picks a replica's gradients up before they are accumulated.
// Those that come by another way would stay where nobody looks.
class NoGradient final : public autograd::PostAccumulateGradHook {
 public:
  explicit NoGradient(std::size_t replica) : replica_(replica) {}

  void operator()(const autograd::Variable& leaf) override {
    leaf.mutable_grad().reset();
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "parallel.backward",
         .message = format(
             "a gradient reached a parameter of replica {} by another way than "
             "from the results of forward, and would be lost",
             replica_),
         .hint = "call backward on the results alone, not inside forward or "
                 "another backward; there, torch::autograd::grad works"});
  }

 private:
  std::size_t replica_;
};

// Where the gradient of a shard arrives; the join node takes it from there.
class InputGate final : public autograd::Node {
 public:
  InputGate() : Node(kEndNumber) {}

  std::string name() const override {
    return "LockstepInputGate";
  }
  autograd::variable_list apply(autograd::variable_list&& /*grads*/) override {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "parallel.forward",
         .message = "a backward pass that did not begin at the results of "
                    "forward reached an input of the module",
         .hint = "call backward on the results, or detach the input first"});
  }
};

// The gates of one pass, by the input of a node that they stand before.
class Gates {
 public:
  /// Makes a gate before `end`, a leaf's or a computed tensor's, and leads
  /// `end` to it; one that a former pass made stays.
  void add(autograd::Edge& end, const at::Tensor& tensor) {
    if (is_gate(*end.function)) {
      return;
    }
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

bool is_gate(const autograd::Node& node) {
  return dynamic_cast<const Gate*>(&node) != nullptr;
}

bool is_input_gate(const autograd::Node& node) {
  return dynamic_cast<const InputGate*>(&node) != nullptr;
}

void set_gates(ReplicaPass& pass) {
  Gates gates;
  for (GraphExit& exit : pass.exits) {
    gates.add(exit.edge, exit.leaf);
  }
  for (Stranger& stranger : pass.strangers) {
    gates.add(stranger.gate, stranger.leaf);
  }
  for (const Joint& joint : pass.joints) {
    autograd::Edge& edge = joint.node->next_edges()[joint.place];
    gates.redirect(edge);
    // An operation in place on a view keeps the edges of its operands twice.
    auto* copy = dynamic_cast<autograd::CopySlices*>(joint.node);
    if (copy != nullptr && copy->fn != nullptr && joint.place > 0) {
      copy->fn->next_edges()[joint.place] = edge;
    }
  }
  for (autograd::Edge& root : pass.roots) {
    gates.redirect(root);
  }
}

at::Tensor gated_input(const at::Tensor& shard) {
  at::Tensor input = shard.variable_data();
  auto gate = make_node<InputGate>();
  gate->add_input_metadata(input);
  autograd::impl::set_gradient_edge(input, {std::move(gate), 0});
  return input;
}

void refuse_gradients(std::span<const ParameterRow> rows, std::size_t replica) {
  for (const ParameterRow& row : rows) {
    for (const at::Tensor& leaf : row.leaves[replica]) {
      autograd::impl::set_post_acc_grad_hooks(
          leaf,
          std::make_unique<NoGradient>(replica));
    }
  }
}

} // namespace lockstep::parallel
