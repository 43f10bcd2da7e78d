// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/ddp/output_sink.h"

#include <utility>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

namespace lockstep::dist::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Sink : torch::autograd::Function<Sink> {
  static variable_list forward(
      AutogradContext* context,
      const std::shared_ptr<FirstBackward>& first,
      at::TensorList outputs) {
    context->set_materialize_grads(false);
    context->saved_data["first"] =
        c10::IValue::make_capsule(c10::make_intrusive<Holder>(first));
    variable_list copies;
    copies.reserve(outputs.size());
    for (const at::Tensor& output : outputs) {
      copies.push_back(output.clone());
    }
    return copies;
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& gradients) {
    const auto holder = c10::static_intrusive_pointer_cast<Holder>(
        context->saved_data["first"].toCapsule());
    if (holder->first != nullptr &&
        !std::exchange(holder->first->has_come, true)) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          holder->first->at_end);
    }
    variable_list results{at::Tensor()};
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  }

 private:
  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<FirstBackward> given)
        : first(std::move(given)) {}
    std::shared_ptr<FirstBackward> first;
  };
};

} // namespace

std::vector<at::Tensor> sink_outputs(
    const std::vector<at::Tensor>& outputs,
    const std::shared_ptr<FirstBackward>& first) {
  std::vector<at::Tensor> results = outputs;
  variable_list with_graph;
  for (const at::Tensor& output : outputs) {
    if (output.defined() && output.grad_fn() != nullptr) {
      with_graph.push_back(output);
    }
  }
  if (with_graph.empty()) {
    return results;
  }
  const variable_list sunk = Sink::apply(first, at::TensorList(with_graph));
  auto next = sunk.begin();
  for (at::Tensor& result : results) {
    if (result.defined() && result.grad_fn() != nullptr) {
      result = *next++;
    }
  }
  return results;
}

} // namespace lockstep::dist::internal
