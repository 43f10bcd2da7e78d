// SPDX-License-Identifier: BSD-3-Clause
//
// What is inside a wrapped model, with its own type: members, layers by index,
// methods of one's own.
#include <iomanip>
#include <iostream>

#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/modules.h"

namespace ls = lockstep;
namespace nn = torch::nn;

struct Net : nn::Module {
  Net() {
    body =
        register_module("body", nn::Sequential(nn::Linear(4, 3), nn::ReLU()));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return body->forward(x);
  }
  // A method beside forward.
  static torch::Tensor loss(
      const torch::Tensor& output,
      const torch::Tensor& target) {
    return nn::functional::mse_loss(output, target);
  }
  nn::Sequential body = nullptr;
  std::string name = "my net";
};

int main() {
  at::set_num_threads(1);
  ls::start_sim({.devices = 2});
  torch::manual_seed(1);
  std::cout << std::setprecision(4);
  ls::DataParallel model(ls::make_module<Net>());
  model->to(model->devices().front());

  // `model->loss(...)` does not compile: the wrapper has forward and nothing
  // else of Net. `module()` is the Net.
  const auto output = model->forward(torch::ones({6, 4}));
  const auto loss = model->module()->loss(output, torch::ones_like(output));
  std::cout << "model->module()->loss(): " << loss.item<float>() << "\n"
            << "model->module()->name: " << model->module()->name << "\n"
            << "model->module()->body[0]: "
            << ls::to_string(*model->module()->body[0]) << "\n";

  // A model made by its name is known by its base class only; ask for more.
  ls::DataParallel resnet(ls::make_model("resnet18"));
  std::cout << "fc: " << ls::to_string(*resnet->module<ls::ResNet>()->fc)
            << "\n";
  try {
    (void)resnet->module<nn::LinearImpl>();
  } catch (const ls::Exception& e) {
    std::cout << e.what() << "\n";
  }
}
