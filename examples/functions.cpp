// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of DataParallel one by one, as functions: scatter, replicate,
// parallel_apply, gather; and all of them at once, data_parallel.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/tensor/modules.h"

namespace ls = lockstep;
using ls::parallel::data_parallel;
using ls::parallel::gather;
using ls::parallel::parallel_apply;
using ls::parallel::replicate;
using ls::parallel::scatter;

int main() {
  const auto devices = ls::parse_devices("sim*3"); // starts them
  torch::manual_seed(0);
  torch::nn::Linear net(5, 2);
  net->to(devices.front());
  const auto input = torch::randn({10, 5});

  const auto shards = scatter(input, devices);
  const auto replicas = replicate(net.ptr(), devices);
  const auto outputs = parallel_apply(replicas, shards, devices);
  const auto joined = gather(outputs, devices.front());

  for (const auto& shard : shards) {
    std::cout << "scatter: " << ls::size_text(shard.sizes()) << " on "
              << shard.device().str() << "\n";
  }
  std::cout << "replicate: the first is the module itself, "
            << (replicas.front() == net.ptr() ? "yes" : "no") << "\n";
  std::cout << "gather: " << ls::size_text(joined.sizes()) << " on "
            << joined.device().str() << "\n";
  joined.sum().backward();
  std::cout << "gradients of 10 rows: " << net->bias.grad()[0].item<float>()
            << "\n";

  const auto output = data_parallel(net.ptr(), {.devices = "sim*3"}, input);
  std::cout << "data_parallel: "
            << (torch::equal(output, joined) ? "the same" : "another")
            << " output\n";
}
