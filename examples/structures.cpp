// SPDX-License-Identifier: BSD-3-Clause
//
// Any forward will do: tensors inside containers and structs are split and
// joined, values are given to each replica as they are. A class of one's own
// says which of the two it wants.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"

namespace ls = lockstep;

struct ImageBatch {
  torch::Tensor images;
  std::vector<torch::Tensor> boxes;
  std::string split;
};

// Says where the tensors of a struct are.
template <>
struct lockstep::Structure<ImageBatch>
    : lockstep::Fields<&ImageBatch::images, &ImageBatch::boxes> {};

struct Config {
  double scale = 1;
};

// Nothing to split: each replica gets it as it is.
template <>
struct lockstep::Structure<Config> : lockstep::AsIs {};

using Result = std::map<std::string, torch::Tensor>;

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", torch::nn::Linear(8, 2));
  }
  Result forward(const ImageBatch& batch, const Config& config) {
    return {
        {"scores", fc->forward(batch.images) * config.scale},
        {"areas", batch.boxes[0].prod(1) + batch.boxes[1].prod(1)}};
  }
  torch::nn::Linear fc = nullptr;
};
TORCH_MODULE(Net);

int main() {
  ls::start_sim({.devices = 4});
  ls::DataParallel model{Net()};
  model->to(model->devices().front());

  const ImageBatch batch{
      .images = torch::ones({10, 8}),
      .boxes = {torch::ones({10, 4}), torch::ones({10, 4})},
      .split = "train"};
  for (const auto& [name, tensor] :
       model->forward(batch, Config{.scale = 0.5})) {
    std::cout << name << ": " << ls::size_text(tensor.sizes()) << " on "
              << tensor.device().str() << "\n";
  }
}
