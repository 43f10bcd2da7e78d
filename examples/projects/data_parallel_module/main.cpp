// SPDX-License-Identifier: BSD-3-Clause
//
// A module of one's own on two devices: two inputs, a map as the result. The
// devices are simulated, so that this runs on any machine.
#include <iostream>
#include <map>
#include <string>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;

struct MatcherImpl : torch::nn::Cloneable<MatcherImpl> {
  MatcherImpl() {
    reset();
  }
  void reset() override {
    image = register_module("image", torch::nn::Linear(8, 4));
    text = register_module("text", torch::nn::Linear(6, 4));
  }
  std::map<std::string, torch::Tensor> forward(
      const torch::Tensor& images,
      const torch::Tensor& texts) {
    const auto a = image->forward(images);
    const auto b = text->forward(texts);
    return {{"distance", (a - b).pow(2).sum(1)}, {"score", (a * b).sum(1)}};
  }
  torch::nn::Linear image = nullptr;
  torch::nn::Linear text = nullptr;
};
TORCH_MODULE(Matcher);

int main() {
  ls::start_sim({.devices = 4});
  torch::manual_seed(0);
  Matcher net;
  net->to(torch::Device("sim:0"));
  ls::DataParallel model(net, {.devices = "sim*2"});

  const auto results =
      model->forward(torch::ones({10, 8}), torch::ones({10, 6}));
  for (const auto& [name, tensor] : results) {
    std::cout << name << ": " << tensor.sizes() << " on " << tensor.device()
              << "\n";
  }
  results.at("distance").mean().backward();
  std::cout << "gradient of image.weight: " << net->image->weight.grad().sizes()
            << " on " << net->image->weight.grad().device() << "\n";
}
