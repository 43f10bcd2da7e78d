// SPDX-License-Identifier: BSD-3-Clause
//
// The device that a program uses unless told otherwise, its default dtype, and
// which devices it sees:
//   default_device
//   default_device --sim=false          (Python: --cuda false)
//   LOCKSTEP_SIM_DEVICES=4 LOCKSTEP_VISIBLE_DEVICES=1,3 default_device
#include <iostream>
#include <span>
#include <string_view>

#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"

namespace ls = lockstep;

void describe(const char* what, const torch::Tensor& tensor) {
  std::cout << what << ": " << tensor.dtype().name() << " on "
            << tensor.device().str() << "\n";
}

int main(int argc, char** argv) {
  // Without a GPU simulated ones stand in. Set the variable outside of the
  // program, as CUDA_VISIBLE_DEVICES: it is read once, here.
  if (ls::device_count("cuda") == 0) {
    ls::start_sim();
    for (const auto& device : ls::parse_devices("sim")) {
      std::cout << device.str() << " is device "
                << ls::sim_counters(device.index()).physical << "\n";
    }
  }

  const bool use_accelerator =
      argc < 2 || std::string_view(argv[1]) != "--sim=false";
  const ls::DefaultDevice start =
      ls::default_device({.use_accelerator = use_accelerator});
  if (!start.warning.empty()) {
    std::cerr << start.warning << "\n";
  }

  // LibTorch has no default device: name it where tensors are made.
  describe("a tensor", torch::randn({2, 3}, start.device));
  torch::nn::Linear linear(3, 2);
  linear->to(start.device);
  describe("a parameter", linear->weight);

  // The default dtype is the process's.
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(torch::kDouble));
  describe("a tensor from now on", torch::ones({2}, start.device));
  describe("a parameter from now on", torch::nn::Linear(3, 2)->weight);
}
