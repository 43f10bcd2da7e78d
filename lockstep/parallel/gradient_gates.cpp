// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/gradient_gates.h"

#include <mutex>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/base/error.h"
#include "lockstep/tensor/compat.h"

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

class Gate final : public autograd::Node {
 public:
  explicit Gate(NodePtr accumulator)
      : Node(autograd::edge_list{{std::move(accumulator), 0}}) {}

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

// The node behind the gates that other groups may have set before it.
NodePtr accumulator_of(const at::Tensor& leaf) {
  NodePtr node = autograd::impl::grad_accumulator(leaf);
  while (dynamic_cast<const Gate*>(node.get()) != nullptr) {
    node = node->next_edge(0).function;
  }
  return node;
}

// As impl::set_grad_accumulator, which takes no lock.
void set_accumulator(
    const at::Tensor& leaf,
    const NodePtr& node,
    const autograd::Node* only_instead_of = nullptr) {
  autograd::AutogradMeta& meta = *autograd::impl::get_autograd_meta(leaf);
  const std::lock_guard lock(meta.mutex_);
  if (only_instead_of == nullptr ||
      meta.grad_accumulator_.lock().get() == only_instead_of) {
    meta.grad_accumulator_ = node;
  }
}

} // namespace

GradientGates::GradientGates(std::span<const ParameterRow> rows) {
  if (!at::GradMode::is_enabled()) {
    return;
  }
  gates_.reserve(rows.size());
  for (const ParameterRow& row : rows) {
    if (!row.master.requires_grad() || row.master.grad_fn() != nullptr) {
      continue;
    }
    NodePtr gate = make_node<Gate>(accumulator_of(row.master));
    gate->add_input_metadata(row.master);
    set_accumulator(row.master, gate);
    gates_.emplace_back(row.master, std::move(gate));
  }
}

GradientGates::~GradientGates() {
  for (const auto& [master, gate] : gates_) {
    set_accumulator(master, gate->next_edge(0).function, gate.get());
  }
}

at::Tensor gated_input(const at::Tensor& shard, bool is_leaf) {
  at::Tensor input = shard.variable_data();
  if (is_leaf) {
    input.set_requires_grad(true);
    return input;
  }
  NodePtr gate = make_node<InputGate>();
  gate->add_input_metadata(input);
  autograd::impl::set_gradient_edge(input, {std::move(gate), 0});
  return input;
}

} // namespace lockstep::parallel
