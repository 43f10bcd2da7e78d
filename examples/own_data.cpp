// SPDX-License-Identifier: BSD-3-Clause
//
// Data and a module of one's own: images with masks and labels, a network with
// two results, and a loader that goes on in the middle of an epoch.
#include <iostream>
#include <tuple>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;
namespace nn = torch::nn;

// No base class but LibTorch's: no reset(), no clone().
struct Net : nn::Module {
  Net(int channels, int classes)
      : body(register_module("body", nn::Conv2d(1, channels, 3))),
        head(register_module("head", nn::Linear(channels, classes))) {}
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x) {
    const auto maps = torch::relu(body(x));
    return {maps.mean(1), head(maps.mean({2, 3}))};
  }
  nn::Conv2d body;
  nn::Linear head;
};

// A bright row, whose number is the label.
torch::Tensor image(std::int64_t i) {
  auto pixels = torch::zeros({1, 8, 8});
  pixels[0][i % 8].fill_(1);
  return pixels;
}

torch::Tensor mask(std::int64_t i) {
  return image(i)[0].slice(0, 1, 7).slice(1, 1, 7);
}

int main() try {
  torch::manual_seed(0);
  const auto data = ls::make_dataset(100, [](std::int64_t i) {
    return std::tuple{image(i), mask(i), i % 8}; // tensors and a number
  });
  ls::Loader loader(data, {.batch_size = 30, .workers = 2, .shuffle = true});
  const auto net = ls::make_module<Net>(4, 8); // remembers how it was made
  ls::DataParallel model(net, {.devices = "cpu*2"});
  torch::optim::SGD sgd(model->parameters(), /*lr=*/0.1);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& [images, masks, labels] : loader) {
      const auto [maps, scores] = model->forward(images);
      const auto loss = torch::mse_loss(maps, masks) +
                        torch::cross_entropy_loss(scores, labels);
      sgd.zero_grad();
      loss.backward();
      sgd.step();
      std::cout << "epoch " << loader.epoch() << ": images " << images.sizes()
                << ", masks " << masks.sizes() << ", labels "
                << labels.scalar_type() << " " << labels.sizes() << "\n";
    }
  }

  auto stopped = loader.begin(); // the third epoch: one batch, then the end
  const ls::LoaderState state = loader.state();
  std::cout << "stopped in epoch " << state.epoch << " after " << state.samples
            << " samples\n";
  ls::Loader other(data, {.batch_size = 40, .shuffle = true});
  other.resume(state);
  for (auto& [images, masks, labels] : other) {
    std::cout << "goes on with " << labels.size(0) << "\n";
  }
} catch (const ls::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
