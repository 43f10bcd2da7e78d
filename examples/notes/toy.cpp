// SPDX-License-Identifier: BSD-3-Clause
//
// A batch is split, each device computes its part, the outputs are joined:
//   toy [DEVICES]
#include <iostream>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;

struct Model : torch::nn::Module {
  Model(int in, int out)
      : fc(register_module("fc", torch::nn::Linear(in, out))) {}
  torch::Tensor forward(const torch::Tensor& input) {
    auto output = fc->forward(input);
    std::cout << "  In Model: input size " + ls::size_text(input.sizes()) +
                     " output size " + ls::size_text(output.sizes()) + "\n";
    return output;
  }
  torch::nn::Linear fc;
};

int main(int argc, char** argv) {
  torch::manual_seed(0);
  const auto rows = torch::randn({100, 5});
  const auto dataset = ls::make_dataset(rows.size(0), [rows](std::int64_t i) {
    return rows[i];
  });
  ls::DataParallel model(
      ls::make_module<Model>(5, 2),
      {.devices = argc > 1 ? argv[1] : ""});
  ls::Loader loader(dataset, {.batch_size = 30, .shuffle = true});
  if (model->devices().size() > 1) {
    std::cout << "Let's use " << model->devices().size() << " devices!\n";
  }
  model->to(model->devices().front());
  for (const auto& input : loader) {
    const auto output = model->forward(input);
    std::cout << "Outside: input size " << ls::size_text(input.sizes())
              << " output_size " << ls::size_text(output.sizes()) << "\n";
  }
}
