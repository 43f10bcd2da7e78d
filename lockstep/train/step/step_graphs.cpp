// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/step_graphs.h"

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>

#include "lockstep/base/error.h"
#include "lockstep/tensor/internal/module_children.h"

namespace lockstep::train {
namespace {

void add_sizes(const at::Tensor& tensor, std::vector<std::int64_t>& sizes) {
  if (tensor.defined()) {
    sizes.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
    for (const at::IntArrayRef numbers : {tensor.sizes(), tensor.strides()}) {
      sizes.insert(sizes.end(), numbers.begin(), numbers.end());
    }
  }
}

void add_place(const at::Tensor& tensor, std::vector<std::uintptr_t>& state) {
  if (tensor.defined()) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): compared
    // only
    state.push_back(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()));
    state.push_back(tensor.requires_grad() ? 1 : 0);
  }
}

at::Tensor place_for(const at::Tensor& tensor, c10::Device device) {
  return tensor.defined()
             ? at::empty_like(tensor, tensor.options().device(device))
             : at::Tensor();
}

} // namespace

StepGraphs::StepGraphs(c10::Device device) : device_(device) {
  make_device_graph(device); // throws where there are none
}

StepGraphs::Conditions StepGraphs::Conditions::of(
    const torch::nn::Module& net,
    const Batch& batch,
    double weight) {
  Conditions conditions{.trains = net.is_training(), .weight = weight};
  add_sizes(batch.images, conditions.sizes);
  add_sizes(batch.targets, conditions.sizes);
  conditions.add(net);
  return conditions;
}

// One walk in each step, which copies no list.
void StepGraphs::Conditions::add(const torch::nn::Module& module) {
  state.push_back(module.is_training() ? 1 : 0);
  for (const auto& parameter : own_parameters_of(module)) {
    add_place(parameter.value(), state);
    has_gradients = has_gradients || (parameter.value().defined() &&
                                      parameter.value().grad().defined());
  }
  for (const auto& buffer : own_buffers_of(module)) {
    add_place(buffer.value(), state);
  }
  for (const auto& child : own_children_of(module)) {
    add(*child.value());
  }
}

void StepGraphs::Recording::copy_inputs(const Batch& batch) const {
  inputs.images.copy_(batch.images, /*non_blocking=*/true);
  if (batch.targets.defined()) {
    inputs.targets.copy_(batch.targets, /*non_blocking=*/true);
  }
}

at::Tensor StepGraphs::Recording::replay() {
  graph->replay();
  for (auto& [parameter, gradient] : gradients) {
    if (!parameter.grad().defined()) { // a simulated graph has made a new one
      parameter.mutable_grad() = gradient;
    }
  }
  return result;
}

StepGraphs::Recording* StepGraphs::find(const Conditions& conditions) {
  const auto same_shape = [&](const Recording& recording) {
    return recording.conditions.has_shape_of(conditions);
  };
  const auto found = std::ranges::find_if(recordings_, same_shape);
  if (found == recordings_.end()) {
    return nullptr;
  }
  if (found->conditions.state != conditions.state) {
    recordings_.erase(found);
    return nullptr;
  }
  return &*found;
}

// Those that the recording writes.
void StepGraphs::keep_gradients(
    const torch::nn::Module& net,
    Recording& recording) {
  if (!recording.conditions.trains) {
    return;
  }
  for (at::Tensor& parameter : net.parameters()) {
    if (parameter.grad().defined()) {
      recording.gradients.emplace_back(parameter, parameter.grad());
    }
  }
}

StepGraphs::Recording& StepGraphs::record(
    const torch::nn::Module& net,
    Conditions conditions,
    const Batch& batch,
    const Work& work) {
  Recording recording{.conditions = std::move(conditions)};
  recording.inputs.images = place_for(batch.images, device_);
  recording.inputs.targets = place_for(batch.targets, device_);
  recording.copy_inputs(batch);
  recording.graph = make_device_graph(device_);
  // In its place already: a simulated graph calls the function later.
  Recording& kept = recordings_.emplace_back(std::move(recording));
  try {
    kept.graph->record([&kept, work] { kept.result = work(kept.inputs); });
  } catch (...) {
    // Nothing has run, so what a backward pass has left is no gradient.
    keep_gradients(net, kept);
    for (auto& [parameter, gradient] : kept.gradients) {
      parameter.mutable_grad() = at::Tensor();
    }
    recordings_.pop_back();
    throw;
  }
  keep_gradients(net, kept);
  return kept;
}

at::Tensor StepGraphs::run_first(const Batch& batch, const Work& work) {
  const at::Generator& host = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = host.get_state();
  at::Tensor result = work(batch);
  if (!at::equal(host.get_state(), before)) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "train.graphs",
         .message =
             "a step draws random numbers on the host, which a recording "
             "would repeat",
         .hint = "draw them on the device, or leave out --cuda-graphs",
         .detail = "E_GRAPH"});
  }
  return result;
}

at::Tensor StepGraphs::run(
    torch::nn::Module& net,
    const Batch& batch,
    double weight,
    const Work& work) {
  Conditions conditions = Conditions::of(net, batch, weight);
  if (conditions.trains && conditions.has_gradients) {
    return work(batch);
  }
  if (Recording* const recording = find(conditions)) {
    recording->copy_inputs(batch);
    return recording->replay();
  }
  Conditions& last = conditions.trains ? last_trained_ : last_tested_;
  const bool is_repeated =
      last.has_shape_of(conditions) && last.state == conditions.state;
  last = conditions;
  if (!is_repeated) {
    return run_first(batch, work);
  }
  return record(net, std::move(conditions), batch, work).replay();
}

} // namespace lockstep::train
