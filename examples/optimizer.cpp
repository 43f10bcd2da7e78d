// SPDX-License-Identifier: BSD-3-Clause
//
// The optimizer of a wrapped model: parameters filtered by requires_grad,
// DataParallel around the optimizer, a learning rate that is halved.
#include <iomanip>
#include <iostream>
#include <memory>

#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"

namespace ls = lockstep;
namespace nn = torch::nn;

// Three steps on these devices.
void train(const std::string& devices) {
  torch::manual_seed(0);
  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 1));
  net[0]->parameters()[0].set_requires_grad(false); // frozen
  ls::DataParallel model(net, {.devices = devices});
  model->to(model->devices().front());
  const auto input = torch::randn({30, 4});
  const auto target = torch::randn({30, 1}).to(model->devices().front());

  // One group, of the parameters that take gradients. The optimizer works on
  // the module's own parameters, so it needs no wrapper; with one, `module()`
  // gives it back.
  const ls::DataParallelOptimizer optimizer(std::make_shared<ls::SGD>(
      ls::ParamGroup{.params = ls::trainable_parameters(*model)},
      ls::SGDOptions{
          .lr = 0.01,
          .momentum = 0.9,
          .weight_decay = 0.0005,
          .nesterov = false}));
  std::cout << devices << ": "
            << optimizer->module()->param_groups().front().params.size()
            << " of " << model->parameters().size() << " parameters\n";
  for (int step = 0; step < 3; ++step) {
    optimizer->module()->zero_grad();
    const auto loss = nn::functional::mse_loss(model->forward(input), target);
    loss.backward();
    optimizer->module()->step();
    std::cout << "  loss " << loss.item<float>() << ", lr "
              << optimizer->module()->param_groups().front().lr() << "\n";
    for (ls::ParamGroup& group : optimizer->module()->param_groups()) {
      group.set_lr(group.lr() / 2);
    }
  }
}

int main() {
  at::set_num_threads(1); // the same sums on every machine
  ls::start_sim({.devices = 6});
  std::cout << std::setprecision(5);
  train("sim:2");
  train("sim:2,4,5");
}
