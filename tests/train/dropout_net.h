// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/nn/functional/dropout.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

namespace lockstep::train {

/// A user's module: no clone(), statistics, dropout.
struct DropoutNet : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    const auto options =
        torch::nn::functional::DropoutFuncOptions().p(0.3).training(
            is_training());
    const at::Tensor hidden =
        norm->forward(first->forward(x.flatten(1))).relu();
    return last->forward(torch::nn::functional::dropout(hidden, options));
  }
  torch::nn::Linear first =
      register_module("first", torch::nn::Linear(784, 16));
  torch::nn::BatchNorm1d norm =
      register_module("norm", torch::nn::BatchNorm1d(16));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(16, 10));
};

} // namespace lockstep::train
