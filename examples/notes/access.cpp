// SPDX-License-Identifier: BSD-3-Clause
//
// What is inside a wrapped model: its text, its layers, its own methods:
//   access [DEVICES]
#include <iostream>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;
namespace nn = torch::nn;

struct Net : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return features->forward(x);
  }
  static torch::Tensor loss(const torch::Tensor& y, const torch::Tensor& t) {
    return torch::mse_loss(y, t);
  }
  std::string name = "two layers";
  nn::Sequential features = register_module(
      "features",
      nn::Sequential(
          {{"conv1", nn::Conv2d(1, 20, 5)},
           {"relu1", nn::ReLU()},
           {"conv2", nn::Conv2d(20, 64, 5)},
           {"relu2", nn::ReLU()}}));
};

int main(int argc, char** argv) {
  const char* devices = argc > 1 ? argv[1] : "";
  ls::DataParallel model(ls::make_module<Net>(), {.devices = devices});
  model->to(model->devices().front());
  std::cout << ls::to_string(*model) << "\n";
  std::cout << model->module()->name << "\n";
  auto& features = model->module()->features;
  std::cout << ls::to_string(*features[0]) << "\n";
  std::cout << ls::to_string(*features->named_children()["conv2"]) << "\n";
  const auto output = model->forward(torch::ones({4, 1, 12, 12}));
  const auto loss = model->module()->loss(output, output.detach() + 2);
  std::cout << "loss " << loss.item<float>() << "\n";
  // model->loss(output, output) does not compile: it is the module's.
  for (const auto& p : model->named_parameters()) {
    std::cout << p.key() << " " << ls::size_text(p.value().sizes()) << "\n";
  }
}
