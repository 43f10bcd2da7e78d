// SPDX-License-Identifier: BSD-3-Clause
//
// A gradient of a gradient through several replicas, as in a gradient penalty.
// It needs the connected graph; without it, the error says so.
#include <iomanip>
#include <iostream>

#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"

namespace ls = lockstep;
namespace nn = torch::nn;

// (|d output / d input| - 1)^2, and its gradient at the first bias.
void penalty(
    const nn::Sequential& net,
    const ls::DataParallelOptions& options) {
  ls::DataParallel model(net, options);
  const auto input =
      torch::ones({6, 4}, torch::Device("sim:0")).requires_grad_();
  const auto slope = torch::autograd::grad(
      {model->forward(input).sum()},
      {input},
      /*grad_outputs=*/{},
      /*retain_graph=*/true,
      /*create_graph=*/true)[0];
  const auto loss = (slope.norm(2, 1) - 1).square().mean();
  loss.backward();
  std::cout << "penalty " << loss.item<float>() << ", gradient of "
            << model->parameters()[0].grad().norm().item<float>() << " on "
            << model->parameters()[0].grad().device().str() << "\n";
  model->zero_grad();
}

int main() {
  at::set_num_threads(1);
  ls::start_sim({.devices = 3});
  torch::manual_seed(0);
  std::cout << std::setprecision(4);
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
  net->to(torch::Device("sim:0"));
  penalty(net, {.devices = "sim:0"});
  penalty(net, {.devices = "sim*3", .connected_graph = true});
  try {
    penalty(net, {.devices = "sim*3"});
  } catch (const std::exception& e) {
    const std::string text = e.what();
    std::cout << text.substr(0, text.find('\n')) << "\n";
  }
}
