// SPDX-License-Identifier: BSD-3-Clause
//
// Known problem 1: changes inside forward are lost. Replicas work on copies,
// so PyTorch drops what a replica does to a parameter, and says nothing. Here
// the pass fails and names the parameter. Buffers (BatchNorm's statistics)
// behave as in PyTorch: those of replica 0 are the module's and stay.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"

namespace ls = lockstep;

struct CounterImpl : torch::nn::Cloneable<CounterImpl> {
  explicit CounterImpl(bool changes) : changes_weight(changes) {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({1}));
    rows = register_buffer("rows", torch::zeros({1}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    rows.add_(x.size(0)); // a buffer: allowed
    if (changes_weight) {
      const torch::NoGradGuard no_grad;
      weight.add_(1); // a parameter: lost in PyTorch, an error here
    }
    return x * weight;
  }
  bool changes_weight;
  torch::Tensor weight;
  torch::Tensor rows;
};
TORCH_MODULE(Counter);

int main() {
  ls::start_sim({.devices = 3});
  const auto x = torch::ones({30, 1});

  ls::DataParallel model(Counter(false));
  model->to(model->devices().front());
  for (int pass = 1; pass <= 2; ++pass) {
    model->forward(x);
    std::cout << "rows after pass " << pass << ": "
              << model->module()->rows.item<float>() << "\n";
  }

  ls::DataParallel changing(Counter(true));
  changing->to(changing->devices().front());
  try {
    changing->forward(x);
  } catch (const ls::Exception& e) {
    std::cout << e.what() << "\n";
  }
}
