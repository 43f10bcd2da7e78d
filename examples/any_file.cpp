// SPDX-License-Identifier: BSD-3-Clause
//
// Weights from whatever file into whatever module: any_file FOLDER
#include <iostream>
#include <string>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : ".";
  torch::nn::Sequential net(
      torch::nn::Conv2d(1, 2, 3),
      torch::nn::BatchNorm2d(2),
      torch::nn::Linear(4, 3));
  ls::load_weights(*net, folder + "/whole_model.pt"); // one device
  ls::DataParallel model(net, {.devices = "cpu*2"});
  ls::load_weights(*model, folder + "/legacy_model.pt"); // many
  const auto report = ls::load_weights(
      *net,
      folder + "/dataparallel.pt",
      {.by_position = true}); // other names, same order and shapes
  for (const auto& [from, to] : report.mapping) {
    std::cout << from << " -> " << to << "\n";
  }
} catch (const ls::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
