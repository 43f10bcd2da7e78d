// SPDX-License-Identifier: BSD-3-Clause
//
// The toy of PyTorch's data-parallel tutorial: 100 rows of 5 random numbers, a
// linear layer, batches of 30. One program for any number of devices:
//   toy_data_parallel 2        (0 and 1: a plain call)
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <torch/torch.h>

#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"

namespace ls = lockstep;
using ls::size_text;

// Replicas run at the same time, so lines printed inside forward come in any
// order: each leaves its own under its device's number, printed after the pass.
struct Said {
  std::mutex mutex;
  std::map<int, std::string> lines;
};

struct ModelImpl : torch::nn::Cloneable<ModelImpl> {
  ModelImpl(std::int64_t in, std::int64_t out) : in_size(in), out_size(out) {
    reset();
  }
  void reset() override {
    fc = register_module("fc", torch::nn::Linear(in_size, out_size));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    auto output = fc->forward(input);
    const std::lock_guard lock(said->mutex);
    said->lines[input.device().index()] =
        "  In Model: input size " + size_text(input.sizes()) + " output size " +
        size_text(output.sizes()) + "\n";
    return output;
  }
  std::int64_t in_size;
  std::int64_t out_size;
  torch::nn::Linear fc = nullptr;
  std::shared_ptr<Said> said = std::make_shared<Said>(); // one for all replicas
};
TORCH_MODULE(Model);

int main(int argc, char** argv) {
  const int devices = argc > 1 ? std::stoi(argv[1]) : 2;
  const std::string type = ls::device_count("cuda") > 0 ? "cuda" : "sim";
  if (type == "sim" && devices > 0) {
    ls::start_sim({.devices = devices});
  }
  if (const auto count = ls::device_count(type); count > 1) {
    std::cout << "Let's use " << count << " GPUs!\n";
  }
  torch::manual_seed(0);
  const auto dataset = std::make_shared<ls::RandomDataset>(5, 100);
  Model net(5, 2);
  ls::DataParallel model(net); // all devices, or the CPU
  model->to(model->devices().front());
  ls::Loader loader(dataset, {.batch_size = 30, .shuffle = true});
  for (const auto& batch : loader) {
    const auto output = model->forward(batch.images);
    for (const auto& [device, line] : std::exchange(net->said->lines, {})) {
      std::cout << line;
    }
    std::cout << "Outside: input size " << size_text(batch.images.sizes())
              << " output_size " << size_text(output.sizes()) << "\n";
  }
}
