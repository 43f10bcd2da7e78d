// SPDX-License-Identifier: BSD-3-Clause
//
// Any subset of the devices, in any order. The first of device_ids is the
// controller: the module must be there, results and gradients come there. Data
// may be anywhere.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/functional.h"

namespace ls = lockstep;

// One pass over these devices, and where everything was.
void show(torch::nn::Linear net, const ls::DataParallelOptions& options) {
  ls::DataParallel model(net, options);
  model->to(model->devices().front()); // or before wrapping
  const auto input = torch::ones({30, 5});
  const auto output = model->forward(input);
  output.sum().backward();
  std::cout << ls::to_string(model->devices()) << ":";
  for (const auto& shard : ls::parallel::scatter({input}, model->devices())) {
    std::cout << " " << shard.front().size(0) << " rows on "
              << shard.front().device().str() << ",";
  }
  std::cout << " output on " << output.device().str() << ", gradients on "
            << net->weight.grad().device().str() << "\n";
  net->zero_grad();
}

int main() {
  ls::start_sim({.devices = 6});
  torch::manual_seed(0);
  torch::nn::Linear net(5, 2);

  show(net, {.device_ids = {1, 3}});
  show(net, {.device_ids = {2, 4, 5}});
  show(net, {.device_ids = {1, 3}, .output_device = "sim:3"});

  // Data elsewhere: no mistake. Each replica's part is copied to its device.
  ls::DataParallel model(net, {.device_ids = {1, 3}});
  const auto input = torch::randn({30, 5});
  const auto expected = model->forward(input);
  for (const char* device : {"sim:0", "sim:1", "sim:3"}) {
    const bool same =
        torch::equal(model->forward(input.to(torch::Device(device))), expected);
    std::cout << "data on " << device << ": "
              << (same ? "same output\n" : "another output\n");
  }

  // The module elsewhere, or a device that is not there: mistakes.
  try {
    model->to(torch::Device("sim:0"));
    model->forward(input);
  } catch (const ls::Exception& e) {
    std::cout << e.what() << "\n";
  }
  try {
    ls::DataParallel absent(net, {.device_ids = {1, 9}});
  } catch (const ls::Exception& e) {
    std::cout << e.what() << "\n";
  }
}
