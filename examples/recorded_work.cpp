// SPDX-License-Identifier: BSD-3-Clause
//
// A forward pass that is recorded once and repeated as a whole: on a GPU a CUDA
// graph, whose kernels start at once.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/device/device_graph.h"
#include "lockstep/lockstep.h"

namespace ls = lockstep;

int main() {
  // Without a GPU a simulated one stands in.
  const bool has_cuda = ls::device_count("cuda") > 0;
  const auto device = ls::parse_devices(has_cuda ? "cuda:0" : "sim*1").front();
  torch::manual_seed(0);
  torch::nn::Sequential net(
      torch::nn::Linear(4, 8),
      torch::nn::ReLU(),
      torch::nn::Linear(8, 1));
  net->to(device);
  const torch::NoGradGuard no_grad;

  const auto inputs = torch::zeros({2, 4}, device); // read by every replay
  auto outputs = net->forward(inputs); // once as it is: libraries are loaded
  const auto graph = ls::make_device_graph(device);
  graph->record([&] { outputs = net->forward(inputs); });
  for (int i = 0; i < 3; ++i) {
    const auto batch = torch::full({2, 4}, double{1} * i, device);
    inputs.copy_(batch);
    graph->replay(); // `outputs` has the batch's numbers
    std::cout << "batch " << i << ": as without recording: " << std::boolalpha
              << outputs.equal(net->forward(batch)) << "\n";
  }
}
