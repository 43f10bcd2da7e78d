// SPDX-License-Identifier: BSD-3-Clause
//
// A training checkpoint as scripts write it, and how each part goes back; what
// is read is a tree like Python's. Python reads the file with torch.load.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;
namespace nn = torch::nn;

int main() try {
  torch::manual_seed(0);
  nn::Linear net(4, 2);
  ls::DataParallel model(net.ptr(), {.devices = "cpu*2"});
  torch::optim::SGD sgd(net->parameters(), /*lr=*/0.1);
  const int epoch = 2;
  const double best = 0.5;
  const std::vector<double> losses = {1.5, 0.75, 0.5};
  const std::map<std::string, int> classes = {{"cat", 0}, {"dog", 1}};

  ls::save(
      {{"epoch", epoch + 1},
       {"best_mIoU", best},
       {"state_dict", model->module()}, // without "module."
       {"optimizer", sgd},
       {"losses", losses},
       {"meta", {{"classes", classes}, {"CLASSES", "cat dog"}}}},
      "checkpoint.pth.tar");

  const auto c = ls::load("checkpoint.pth.tar", {.map_location = "cpu"});
  std::cout << "epoch " << c["epoch"].to<int>() << ", best "
            << c["best_mIoU"].to<double>() << "\n";
  ls::load_weights(*model, c); // finds them; c["state_dict"] is possible, too
  ls::load_state(sgd, c["optimizer"]);

  for (const auto& group : c["optimizer"]["param_groups"]) {
    std::cout << group["lr"].place() << ": " << group["lr"] << "\n";
  }
  for (const auto& [key, value] : c["state_dict"].items()) {
    const auto tensor = value.to<torch::Tensor>();
    std::cout << key << ": " << tensor.sizes() << "\n";
  }
  const auto history = c["losses"].to<std::vector<double>>();
  std::cout << "last of " << history.size() << " losses: " << c["losses"][-1]
            << "\nclasses: " << c["meta"]["classes"] << "\nkeys:";
  for (const std::string& key : c.keys()) {
    std::cout << " " << key;
  }
  std::cout << "\n";
  std::cout << c["best_miou"].to<double>() << "\n"; // throws
} catch (const ls::Exception& error) {
  std::cout << error.what() << "\n";
}
