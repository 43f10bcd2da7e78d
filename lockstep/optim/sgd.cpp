// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>

#include "lockstep/optim/internal/blocks.h"
#include "lockstep/optim/internal/checks.h"
#include "lockstep/optim/internal/kinds.h"
#include "lockstep/optim/internal/part_runner.h"
#include "lockstep/optim/internal/scratch.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/internal/wrapped_number.h"

namespace lockstep {

struct SGD::Settings {
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool fused = false;

  static Settings of(const ParamGroup& group) {
    return {
        .lr = group.lr(),
        .momentum = group.number("momentum"),
        .dampening = group.number("dampening"),
        .weight_decay = group.number("weight_decay"),
        .nesterov = group.flag("nesterov"),
        .maximize = group.flag("maximize"),
        .fused = group.flag("fused")};
  }

  // Python's operations in their order. `buffer` is undefined without momentum,
  // without content in the first step.
  void update(
      const at::Tensor& param,
      internal::WorkingGrad grad,
      const at::Tensor& buffer,
      bool is_first_step) const;
};

namespace {

/// Tensors for one call of the fused kernel.
struct Batch {
  at::Device device;
  at::ScalarType dtype;
  bool is_first_step;
  std::vector<at::Tensor> params = {};
  std::vector<at::Tensor> grads = {};
  std::vector<at::Tensor> buffers = {};
  /// Whose buffers these are.
  std::vector<ParamState*> states = {};
};

constexpr std::string_view kBuffer = "momentum_buffer";

// Undefined before the first step. A step keeps a new one when it has content.
at::Tensor buffer_in(ParamState& state) {
  return state.tensors.empty() ? at::Tensor() : state[kBuffer];
}

Batch& batch_for(
    std::vector<Batch>& batches,
    const at::Tensor& param,
    bool is_first_step) {
  for (Batch& batch : batches) {
    if (batch.device == param.device() && batch.dtype == param.scalar_type() &&
        batch.is_first_step == is_first_step) {
      return batch;
    }
  }
  return batches.emplace_back(Batch{
      .device = param.device(),
      .dtype = param.scalar_type(),
      .is_first_step = is_first_step});
}

} // namespace

SGD::SGD(Params params, const SGDOptions& options)
    : OptimizerBase(
          internal::kSGD,
          std::move(params),
          internal::python_options(options)) {}

void SGD::step() {
  for (const ParamGroup& group : param_groups()) {
    const Settings settings = Settings::of(group);
    const auto step = settings.fused ? &SGD::step_fused : &SGD::step_single;
    step_in_parts(group, settings.momentum != 0, [&](internal::Part& part) {
      step(part, settings);
    });
  }
}

void SGD::Settings::update(
    const at::Tensor& param,
    internal::WorkingGrad grad,
    const at::Tensor& buffer,
    bool is_first_step) const {
  if (maximize) {
    grad.negate();
  }
  if (weight_decay != 0) {
    grad.add(param, weight_decay);
  }
  if (!buffer.defined()) {
    param.add_(grad.get(), -lr);
    return;
  }
  if (is_first_step) {
    buffer.copy_(grad.get());
  } else {
    buffer.mul_(wrapped_number(momentum)).add_(grad.get(), 1 - dampening);
  }
  if (nesterov) {
    grad.add(buffer, momentum);
    param.add_(grad.get(), -lr);
  } else {
    param.add_(buffer, -lr);
  }
}

void SGD::step_single(internal::Part& part, const Settings& settings) {
  for (const auto& [param, state] : part.updates) {
    at::Tensor buffer;
    bool is_first_step = false;
    if (settings.momentum != 0) {
      buffer = buffer_in(*state);
      is_first_step = !buffer.defined();
      if (is_first_step) {
        buffer = at::empty_like(param.grad());
      }
    }
    const std::array tensors = {param, param.grad(), buffer};
    internal::in_blocks(tensors, [&](std::span<const at::Tensor> block) {
      settings.update(
          block[0],
          internal::WorkingGrad(block[1], part.scratch),
          block[2],
          is_first_step);
    });
    if (is_first_step) {
      (*state)[kBuffer] = buffer;
    }
  }
}

void SGD::step_fused(internal::Part& part, const Settings& settings) {
  std::vector<Batch> batches;
  for (const auto& [param, state] : part.updates) {
    internal::check_fused(param);
    if (settings.momentum == 0) {
      Batch& batch = batch_for(batches, param, false);
      batch.params.push_back(param);
      batch.grads.push_back(param.grad());
      continue;
    }
    at::Tensor buffer = buffer_in(*state);
    Batch& batch = batch_for(batches, param, !buffer.defined());
    if (!buffer.defined()) {
      buffer = at::empty_like(param.grad()); // the kernel fills it
    }
    batch.params.push_back(param);
    batch.grads.push_back(param.grad());
    batch.buffers.push_back(buffer);
    batch.states.push_back(state);
  }
  for (const Batch& batch : batches) {
    at::_fused_sgd_(
        batch.params,
        batch.grads,
        batch.buffers,
        settings.weight_decay,
        settings.momentum,
        settings.lr,
        settings.dampening,
        settings.nesterov,
        settings.maximize,
        batch.is_first_step);
    for (std::size_t i = 0; i < batch.states.size(); ++i) {
      (*batch.states[i])[kBuffer] = batch.buffers[i];
    }
  }
}

} // namespace lockstep
