// SPDX-License-Identifier: BSD-3-Clause
//
// Known problem 3: PyTorch copies all parameters to all devices in each forward
// pass. Replicas on the CPU share the parameters' memory. Devices get them in
// each pass, unless the program promises that LibTorch's version counters see
// all changes, as with Lockstep's optimizers.
#include <array>
#include <iomanip>
#include <iostream>
#include <string>

#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"

namespace ls = lockstep;
namespace nn = torch::nn;

// In the order of ls::parallel::Cargo. The batch's gradients are those of
// outputs (to the replicas) and of inputs (back).
constexpr std::array kColumns{
    "parameters",
    "buffers",
    "inputs",
    "outputs",
    "batch grads",
    "gradients"};

// What replica 1 got or sent since the last report.
void report(const std::string& what, const ls::ReplicaGroup& group) {
  std::cout << std::left << std::setw(17) << what << std::right;
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    const auto cargo = static_cast<ls::parallel::Cargo>(c);
    std::cout << std::setw(13) << group.traffic().of(cargo, 1).bytes;
  }
  std::cout << "\n";
  group.traffic().reset();
}

void run(const std::string& title, const ls::DataParallelOptions& options) {
  nn::Sequential net(nn::Linear(1000, 500), nn::BatchNorm1d(500));
  ls::DataParallel model(net, options);
  model->to(model->devices().front());
  ls::SGD sgd(model->parameters(), {.lr = 0.1});
  const auto x = torch::ones({32, 1000});
  std::cout << std::left << std::setw(17) << title << std::right;
  for (const char* column : kColumns) {
    std::cout << std::setw(13) << column;
  }
  std::cout << "\n";
  {
    const torch::NoGradGuard no_grad;
    model->forward(x);
    report("first pass", model->group());
    model->forward(x);
    report("nothing changed", model->group());
  }
  model->forward(x).sum().backward();
  report("backward pass", model->group());
  sgd.step();
  model->forward(x).sum().backward();
  report("after a step", model->group());
}

int main() {
  ls::start_sim({.devices = 2});
  run("sim*2", {.devices = "sim*2"});
  run("promised", {.devices = "sim*2", .trust_versions = true});
  run("cpu*2", {.devices = "cpu*2"});
}
