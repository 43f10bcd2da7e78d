// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cmath>

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "lockstep/optim/internal/blocks.h"
#include "lockstep/optim/internal/checks.h"
#include "lockstep/optim/internal/kinds.h"
#include "lockstep/optim/internal/part_runner.h"
#include "lockstep/optim/internal/scratch.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/internal/wrapped_number.h"

namespace lockstep {

struct Adam::Settings {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool fused = false;
  bool is_decoupled = false;

  static Settings of(const ParamGroup& group) {
    const auto [beta1, beta2] = group.betas();
    return {
        .lr = group.lr(),
        .beta1 = beta1,
        .beta2 = beta2,
        .eps = group.number("eps"),
        .weight_decay = group.number("weight_decay"),
        .amsgrad = group.flag("amsgrad"),
        .maximize = group.flag("maximize"),
        .fused = group.flag("fused"),
        .is_decoupled = group.flag("decoupled_weight_decay")};
  }

  // A parameter and what belongs to it; the last is undefined without amsgrad.
  struct Moments {
    const at::Tensor& param;
    const at::Tensor& grad;
    const at::Tensor& exp_avg;
    const at::Tensor& exp_avg_sq;
    const at::Tensor& max_exp_avg_sq;
  };

  // Python's operations in their order.
  void update(const Moments& moments, double step, internal::Scratch& scratch)
      const;
};

namespace {

/// Tensors for one call of the fused kernel.
struct Batch {
  at::Device device;
  at::ScalarType dtype;
  std::vector<at::Tensor> params = {};
  std::vector<at::Tensor> grads = {};
  std::vector<at::Tensor> exp_avgs = {};
  std::vector<at::Tensor> exp_avg_sqs = {};
  std::vector<at::Tensor> max_exp_avg_sqs = {};
  std::vector<at::Tensor> steps = {};
};

Batch& batch_for(std::vector<Batch>& batches, const at::Tensor& param) {
  for (Batch& batch : batches) {
    if (batch.device == param.device() && batch.dtype == param.scalar_type()) {
      return batch;
    }
  }
  return batches.emplace_back(
      Batch{.device = param.device(), .dtype = param.scalar_type()});
}

} // namespace

Adam::Adam(
    const OptimizerKind& kind,
    Params params,
    const AdamOptions& options,
    bool is_decoupled)
    : OptimizerBase(
          kind,
          std::move(params),
          internal::python_options(options, is_decoupled)) {}

Adam::Adam(Params params, const AdamOptions& options)
    : Adam(internal::kAdam, std::move(params), options, false) {}

AdamW::AdamW(Params params, const AdamOptions& options)
    : Adam(internal::kAdamW, std::move(params), options, true) {}

void Adam::step() {
  for (const ParamGroup& group : param_groups()) {
    const Settings settings = Settings::of(group);
    step_in_parts(group, true, [&](internal::Part& part) {
      if (settings.fused) {
        step_fused(part, settings);
        return;
      }
      for (const internal::Update& update : part.updates) {
        step_single(update, part.scratch, settings);
      }
    });
  }
}

ParamState& Adam::ready_state(
    const internal::Update& update,
    const Settings& settings) {
  const at::Tensor& param = update.param;
  ParamState& state = *update.state;
  if (state.tensors.empty()) {
    const at::Device device =
        settings.fused ? param.device() : at::Device(at::kCPU);
    const auto options =
        at::TensorOptions(internal::step_dtype(settings.fused)).device(device);
    // All or none, if memory is short.
    state.tensors = {
        {"step", at::zeros({}, options)},
        {"exp_avg", at::zeros_like(param)},
        {"exp_avg_sq", at::zeros_like(param)}};
  }
  if (settings.amsgrad && !state["max_exp_avg_sq"].defined()) {
    state["max_exp_avg_sq"] = at::zeros_like(param);
  }
  return state;
}

void Adam::Settings::update(
    const Moments& moments,
    double step,
    internal::Scratch& scratch) const {
  const auto& [param, gradient, exp_avg, exp_avg_sq, max_exp_avg_sq] = moments;
  internal::WorkingGrad grad(gradient, scratch);
  if (maximize) {
    grad.negate();
  }
  if (weight_decay != 0) {
    if (is_decoupled) {
      param.mul_(wrapped_number(1 - lr * weight_decay));
    } else {
      grad.add(param, weight_decay);
    }
  }
  exp_avg.lerp_(grad.get(), 1 - beta1);
  exp_avg_sq.mul_(wrapped_number(beta2))
      .addcmul_(grad.get(), grad.get(), 1 - beta2);

  // Python's floats: pow, also for the square root.
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  const double correction2_sqrt = std::pow(correction2, 0.5);
  if (amsgrad) {
    at::Tensor largest = max_exp_avg_sq;
    at::maximum_out(largest, largest, exp_avg_sq);
  }
  const at::Tensor& second = amsgrad ? max_exp_avg_sq : exp_avg_sq;
  // The gradient is done with: its scratch memory is free.
  at::Tensor denominator = scratch.get(second);
  at::sqrt_out(denominator, second);
  denominator.div_(wrapped_number(correction2_sqrt)).add_(wrapped_number(eps));
  param.addcdiv_(exp_avg, denominator, -(lr / correction1));
}

void Adam::step_single(
    const internal::Update& update,
    internal::Scratch& scratch,
    const Settings& settings) {
  const at::Tensor& param = update.param;
  internal::check_real(param);
  ParamState& state = ready_state(update, settings);
  const auto step = state["step"].add_(1).item<double>();
  const std::array tensors = {
      param,
      param.grad(),
      state["exp_avg"],
      state["exp_avg_sq"],
      settings.amsgrad ? state["max_exp_avg_sq"] : at::Tensor()};
  internal::in_blocks(tensors, [&](std::span<const at::Tensor> block) {
    settings.update(
        {.param = block[0],
         .grad = block[1],
         .exp_avg = block[2],
         .exp_avg_sq = block[3],
         .max_exp_avg_sq = block[4]},
        step,
        scratch);
  });
}

void Adam::step_fused(internal::Part& part, const Settings& settings) {
  std::vector<Batch> batches;
  for (const internal::Update& update : part.updates) {
    const at::Tensor& param = update.param;
    internal::check_fused(param);
    ParamState& state = ready_state(update, settings);
    Batch& batch = batch_for(batches, param);
    batch.params.push_back(param);
    batch.grads.push_back(param.grad());
    batch.exp_avgs.push_back(state["exp_avg"]);
    batch.exp_avg_sqs.push_back(state["exp_avg_sq"]);
    batch.steps.push_back(state["step"]);
    if (settings.amsgrad) {
      batch.max_exp_avg_sqs.push_back(state["max_exp_avg_sq"]);
    }
  }
  for (const Batch& batch : batches) {
    at::_foreach_add_(batch.steps, 1);
    const auto run = [&](const auto& kernel) {
      kernel(
          batch.params,
          batch.grads,
          batch.exp_avgs,
          batch.exp_avg_sqs,
          batch.max_exp_avg_sqs,
          batch.steps,
          settings.lr,
          settings.beta1,
          settings.beta2,
          settings.weight_decay,
          settings.eps,
          settings.amsgrad,
          settings.maximize);
    };
    if (settings.is_decoupled) {
      run([](const auto&... args) { at::_fused_adamw_(args...); });
    } else {
      run([](const auto&... args) { at::_fused_adam_(args...); });
    }
  }
}

} // namespace lockstep
