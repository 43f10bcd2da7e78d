// SPDX-License-Identifier: BSD-3-Clause
//
// A net that Python exported (examples/python/export_for_lockstep.py), trained
// here on two replicas and given back: python_model NET.pt2 [TRAINED.pt2]
#include <iostream>
#include <string>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;

int main(int argc, char** argv) try {
  const std::string file = argc > 1 ? argv[1] : "net.pt2";
  ls::Program net = ls::load_program(file);
  std::cout << net->num_nodes() << " nodes, takes '" << net->inputs()[0].name
            << "' of " << net->inputs()[0].sizes[1].fixed.value_or(0)
            << " numbers\n";

  ls::DataParallel model(net, {.devices = "cpu*2"});
  ls::SGD optimizer(*model, {.lr = 0.1, .momentum = 0.9});
  torch::manual_seed(0);
  const torch::Tensor inputs = torch::randn({96, 8});
  const torch::Tensor targets = inputs.slice(1, 0, 3).argmax(1);
  for (int epoch = 0; epoch < 60; ++epoch) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(inputs), targets)
        .backward();
    optimizer.step();
  }

  net->eval(); // dropout and batch norms are off, as in Python
  const auto right = net->forward(inputs).argmax(1).eq(targets).sum();
  std::cout << (right.item<int>() > 80 ? "learnt" : "not learnt") << "\n";
  if (argc > 2) {
    ls::save_program(net, argv[2]); // torch.export.load reads it
    const ls::Program again = ls::load_program(argv[2]);
    std::cout << "saved: "
              << torch::equal(again->parameters()[0], net->parameters()[0])
              << "\n";
  }
} catch (const ls::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
