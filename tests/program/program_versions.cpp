// SPDX-License-Identifier: BSD-3-Clause
//
// Trains programs that another torch exported: program_versions FOLDER NET...
// writes FOLDER/NET.cpp.pt, which tests/oracle/program_versions.py compares.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"

namespace {

namespace ls = lockstep;

void train(const std::string& front) {
  ls::Program net = ls::load_program(front + ".pt2");
  const auto batches = ls::ckpt::load(front + ".batches.pt");
  const auto& images = batches->root.find("x")->as_list()->items;
  const auto& targets = batches->root.find("y")->as_list()->items;
  ls::SGD optimizer(*net, {.lr = 0.01, .momentum = 0.9});
  torch::manual_seed(1);
  std::vector<at::Tensor> losses;
  for (std::size_t i = 0; i < images.size(); ++i) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::nn::functional::cross_entropy(
        net->forward(ls::to_tensor(*images[i].as_tensor())),
        ls::to_tensor(*targets[i].as_tensor()));
    loss.backward();
    optimizer.step();
    losses.push_back(loss.detach());
  }
  ls::save({{"losses", at::stack(losses)}, {"state", *net}}, front + ".cpp.pt");
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  int failures = 0;
  for (int i = 2; i < argc; ++i) {
    try {
      train(std::string(argv[1]) + "/" + argv[i]);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.what());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}
