// SPDX-License-Identifier: BSD-3-Clause
//
// A net and its steps, equal on all ranks, for the tests of optimizers.
#pragma once

#include <memory>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/optim/optimizers.h"

namespace lockstep::test {

inline torch::nn::Sequential three_layers() {
  torch::nn::Sequential net(
      torch::nn::Linear(4, 6),
      torch::nn::Linear(6, 5),
      torch::nn::Linear(5, 2));
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(
        torch::linspace(-0.6, 0.5, parameter.numel()).view_as(parameter));
  }
  return net;
}

inline at::Tensor batch_of(int step) {
  return torch::arange(12.0).reshape({3, 4}).mul(0.3).sin() + 0.2 * step;
}

inline void backward(torch::nn::Sequential& net, int step) {
  net->forward(batch_of(step)).pow(2).mean().backward();
}

inline void expect_equal_nets(
    const torch::nn::Sequential& found,
    const torch::nn::Sequential& expected) {
  for (std::size_t i = 0; i < expected->parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(found->parameters()[i], expected->parameters()[i]))
        << i;
  }
}

inline std::unique_ptr<Optimizer> make_sgd(Params part) {
  return std::make_unique<SGD>(
      std::move(part),
      SGDOptions{.lr = 0.05, .momentum = 0.9});
}

} // namespace lockstep::test
