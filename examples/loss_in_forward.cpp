// SPDX-License-Identifier: BSD-3-Clause
//
// The first device runs out of memory first: all outputs are gathered there,
// and the loss is computed there. With the loss inside forward each device
// keeps its outputs and returns one number.
#include <iomanip>
#include <iostream>

#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/device_table.h"
#include "lockstep/tensor/make_module.h"

namespace ls = lockstep;
namespace nn = torch::nn;

constexpr std::int64_t kClasses = 10000;

// A network with its loss. Targets are an input: they are split as images are.
struct WithLoss : nn::Module {
  WithLoss() {
    net = register_module("net", nn::Linear(32, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& target) {
    const auto loss = nn::functional::cross_entropy(net->forward(x), target);
    return loss.reshape({1}); // a scalar works, too, with PyTorch's warning
  }
  nn::Linear net = nullptr;
};

// Two steps, of which the second is measured: replicas hold parameters by then.
template <class Model, class LossOf>
void measure(const char* title, Model model, const LossOf& loss_of) {
  model->to(model->devices().front());
  loss_of().backward();
  model->zero_grad();
  ls::DeviceMeter meter(*model);
  const auto loss = loss_of();
  loss.backward();
  meter.count_step();
  std::cout << title << ", loss " << loss.template item<float>() << "\n"
            << to_text(meter.table()) << "\n";
}

int main() {
  at::set_num_threads(1);
  ls::start_sim({.devices = 4});
  torch::manual_seed(0);
  std::cout << std::setprecision(4);
  const auto x = torch::randn({256, 32}, torch::Device("sim:0"));
  const auto target =
      torch::randint(kClasses, {256}, torch::kLong).to(x.device());
  {
    torch::manual_seed(1);
    ls::DataParallel model(nn::Linear(32, kClasses));
    measure("loss outside", model, [&] {
      return nn::functional::cross_entropy(model->forward(x), target);
    });
  }
  torch::manual_seed(1);
  ls::DataParallel model(ls::make_module<WithLoss>());
  measure("loss inside", model, [&] {
    return model->forward(x, target).mean();
  });
  std::cout << "one loss per device: " << model->forward(x, target).sizes()
            << "\n";
}
