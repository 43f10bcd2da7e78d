// SPDX-License-Identifier: BSD-3-Clause
#include "tests/optim/torch_cases.h"

#include <torch/torch.h>

#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/optim/support.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
namespace to = torch::optim;

/// `first` and `second` are the groups' own options. LibTorch takes from
/// `defaults` what they do not change.
template <class Optimizer, class Options>
std::unique_ptr<to::Optimizer> in_groups(
    const std::vector<at::Tensor>& params,
    const Options& first,
    const Options& second,
    const Options& defaults = Options(1e-3)) {
  std::vector<to::OptimizerParamGroup> groups;
  groups.emplace_back(
      std::vector<at::Tensor>(params.begin(), params.begin() + 3),
      std::make_unique<Options>(first));
  groups.emplace_back(
      std::vector<at::Tensor>(params.begin() + 3, params.end()),
      std::make_unique<Options>(second));
  return std::make_unique<Optimizer>(groups, defaults);
}

using Made = std::unique_ptr<to::Optimizer>;
using Tensors = std::vector<at::Tensor>;

Made sgd(const Tensors& params) {
  return in_groups<to::SGD>(params, to::SGDOptions(0.1), to::SGDOptions(0.01));
}

Made sgd_options(const Tensors& params) {
  return in_groups<to::SGD>(
      params,
      to::SGDOptions(0.1).momentum(0.9).weight_decay(5e-4).nesterov(true),
      to::SGDOptions(0.01).momentum(0.8).dampening(0.1));
}

template <class Optimizer, class Options>
Made adam(const Tensors& params) {
  return in_groups<Optimizer>(params, Options(), Options(0.002));
}

template <class Optimizer, class Options>
Made adam_options(const Tensors& params) {
  return in_groups<Optimizer>(
      params,
      Options(0.01)
          .betas({0.8, 0.99})
          .eps(1e-6)
          .weight_decay(1e-3)
          .amsgrad(true),
      Options(0.002));
}

Made rmsprop_with(const Tensors& params, const to::RMSpropOptions& first) {
  return in_groups<to::RMSprop>(
      params,
      first,
      to::RMSpropOptions(0.002),
      to::RMSpropOptions());
}

Made rmsprop(const Tensors& params) {
  return rmsprop_with(params, to::RMSpropOptions());
}

Made rmsprop_options(const Tensors& params) {
  return rmsprop_with(
      params,
      to::RMSpropOptions(0.001)
          .alpha(0.9)
          .eps(1e-6)
          .weight_decay(1e-3)
          .momentum(0.9));
}

Made rmsprop_centered(const Tensors& params) {
  return rmsprop_with(params, to::RMSpropOptions(0.001).centered(true));
}

Made adagrad(const Tensors& params) {
  return in_groups<to::Adagrad>(
      params,
      to::AdagradOptions(),
      to::AdagradOptions(0.1),
      to::AdagradOptions());
}

Made adagrad_options(const Tensors& params) {
  return in_groups<to::Adagrad>(
      params,
      to::AdagradOptions(0.1).lr_decay(0.01).weight_decay(1e-3).eps(1e-8),
      to::AdagradOptions(0.2),
      to::AdagradOptions().initial_accumulator_value(0.1));
}

std::vector<TorchCase> make_cases() {
  // Python's Adam takes lerp for the average of the gradients, and so does its
  // centered RMSprop; LibTorch multiplies and adds.
  return {
      {.name = "SGD", .make = sgd},
      {.name = "SGDOptions", .make = sgd_options},
      {.name = "Adam",
       .has_pythons_bits = false,
       .make = adam<to::Adam, to::AdamOptions>},
      {.name = "AdamOptions",
       .has_pythons_bits = false,
       .make = adam_options<to::Adam, to::AdamOptions>},
      {.name = "AdamW",
       .has_pythons_bits = false,
       .make = adam<to::AdamW, to::AdamWOptions>},
      {.name = "AdamWOptions",
       .has_pythons_bits = false,
       .make = adam_options<to::AdamW, to::AdamWOptions>},
      {.name = "RMSprop", .make = rmsprop},
      {.name = "RMSpropOptions", .make = rmsprop_options},
      {.name = "RMSpropCentered",
       .has_pythons_bits = false,
       .make = rmsprop_centered},
      {.name = "Adagrad", .make = adagrad},
      {.name = "AdagradOptions", .make = adagrad_options},
  };
}

} // namespace

const std::vector<TorchCase>& torch_cases() {
  static const std::vector<TorchCase> cases = make_cases();
  return cases;
}

TorchSession TorchSession::start(
    const TorchCase& test_case,
    at::Device device) {
  TorchSession session = {.params = make_params()};
  for (at::Tensor& param : session.params) {
    param = param.detach().to(device).requires_grad_();
  }
  session.optimizer = test_case.make(session.params);
  return session;
}

void TorchSession::steps(int first, int last) {
  for (int step = first; step < last; ++step) {
    set_grads(params, step);
    for (const at::Tensor& param : params) {
      param.mutable_grad() = param.grad().defined()
                                 ? param.grad().to(param.device())
                                 : at::Tensor();
    }
    optimizer->step();
  }
}

Value TorchSession::snapshot() const {
  ckpt::List weights;
  ValueBuilder builder;
  for (const at::Tensor& param : params) {
    weights.items.push_back(builder.tensor(param.detach()));
  }
  return Value::dict(
      {{"weights", std::move(weights)}, {"optimizer", state_dict(*optimizer)}});
}

void TorchSession::load(const Value& saved) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Value& weight = saved.find("weights")->as_list()->items[i];
    params[i].copy_(to_tensor(*weight.as_tensor()));
  }
  load_state_dict(*optimizer, *saved.find("optimizer"));
}

} // namespace lockstep::test
