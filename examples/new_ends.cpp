// SPDX-License-Identifier: BSD-3-Clause
//
// A trained network for other images: its weights first, then new ends, then
// the wrapper. `net->conv1 = ...` alone would leave the old layer registered:
// forward would use the new one, everything else the old one.
// Writes resnet18.pth into the current folder; a file of torchvision's does.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/models/classification.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"

namespace ls = lockstep;
namespace nn = torch::nn;

nn::Conv2d one_channel_conv() {
  nn::Conv2d conv(nn::Conv2dOptions(1, 64, 7).stride(2).padding(3).bias(false));
  return conv;
}

void print_ends(const char* name, const nn::Module& net) {
  const auto weights = ls::state_dict(net);
  std::cout << name << ": conv1.weight "
            << ls::size_text(weights.get("conv1.weight").sizes())
            << ", fc.weight " << ls::size_text(weights.get("fc.weight").sizes())
            << "\n";
}

int main() {
  ls::start_sim({.devices = 2});
  const auto trained = ls::resnet18();
  ls::save({{"state_dict", trained}}, "resnet18.pth");

  const auto net = ls::resnet18();
  ls::load_weights(*net, "resnet18.pth");
  net->conv1 = net->replace_module("conv1", one_channel_conv());
  net->fc = net->replace_module("fc", nn::Linear(512, 10));
  print_ends("replaced", *net);

  // The same in one step, for a network that is built with its new ends.
  const auto direct = ls::resnet18({.num_classes = 10, .in_channels = 1});
  const auto report = ls::load_weights(
      *direct,
      "resnet18.pth",
      {.may_differ = ls::MayDiffer::kEnds});
  for (const std::string& line : ls::to_lines(report)) {
    std::cout << line << "\n";
  }
  const bool is_same = direct->layer4->parameters().back().equal(
      net->layer4->parameters().back());
  std::cout << "the same weights between: " << std::boolalpha << is_same
            << "\n";

  net->to(torch::Device("sim:0"));
  ls::DataParallel model(net, {.devices = "sim*2"});
  const auto scores = model->forward(torch::randn({4, 1, 28, 28}));
  std::cout << "scores: " << ls::size_text(scores.sizes()) << "\n";

  // What state_dict and DataParallel warn of.
  const auto wrong = ls::resnet18();
  wrong->conv1 = one_channel_conv();
  std::cout << "assigned: " << ls::replaced_children_hint(*wrong) << "\n";
}
