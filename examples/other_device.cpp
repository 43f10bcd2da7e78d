// SPDX-License-Identifier: BSD-3-Clause
//
// A tensor on the wrong device fails on simulated devices as it does on GPUs.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

int main() try {
  lockstep::start_sim({.devices = 4});
  const auto x = torch::ones({8, 3}, torch::Device("sim:1"));
  const auto y = torch::ones({3}, torch::Device("sim:2"));
  std::cout << x.sum().item<float>() << "\n";
  std::cout << x + y << "\n";
} catch (const c10::Error& error) {
  std::cout << error.what_without_backtrace() << "\n";
} catch (const lockstep::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
