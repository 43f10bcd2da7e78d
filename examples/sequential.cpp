// SPDX-License-Identifier: BSD-3-Clause
//
// Layers of a Sequential by index and by name, alone and inside DataParallel,
// printed as Python prints them.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"

namespace ls = lockstep;
namespace nn = torch::nn;

void print_keys(const nn::Module& module) {
  std::cout << "keys:";
  for (const auto& [key, tensor] : ls::state_dict(module).entries) {
    std::cout << " " << key;
  }
  std::cout << "\n";
}

int main() {
  ls::start_sim({.devices = 2});

  // By index.
  nn::Sequential model;
  model->push_back(nn::Conv2d(1, 20, 5));
  model->push_back(nn::ReLU());
  model->push_back(nn::Conv2d(20, 64, 5));
  model->push_back(nn::ReLU());
  std::cout << ls::to_string(*model) << "\n";
  std::cout << "model[2]: " << ls::to_string(*model[2]) << "\n";
  print_keys(*model);

  // By name; the index works too.
  nn::Sequential named(
      {{"conv1", nn::AnyModule(nn::Conv2d(1, 20, 5))},
       {"relu1", nn::AnyModule(nn::ReLU())},
       {"conv2", nn::AnyModule(nn::Conv2d(20, 64, 5))},
       {"relu2", nn::AnyModule(nn::ReLU())}});
  std::cout << ls::to_string(*named) << "\n";
  const auto conv1 = named->named_children()["conv1"];
  std::cout << "model.conv1: " << ls::to_string(*conv1) << "\n";
  std::cout << "the same as model[0]: " << std::boolalpha
            << (conv1 == named->ptr(0)) << "\n";
  // Typed, to reach the layer's own members.
  std::cout << "bias of conv1: " << conv1->as<nn::Conv2d>()->bias.numel()
            << " numbers\n";
  print_keys(*named);

  // Inside the wrapper everything is one level deeper, under `module`.
  ls::DataParallel wrapped(named);
  std::cout << ls::to_string(*wrapped) << "\n";
  std::cout << "model.module[0]: " << ls::to_string(*wrapped->module()->ptr(0))
            << "\n";
  print_keys(*wrapped);
}
