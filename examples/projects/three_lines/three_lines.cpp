// SPDX-License-Identifier: BSD-3-Clause
//
// The program of original.cpp on two devices: three lines of code are other,
// the include, the model and the call of its forward.
#include <cstdio>
#include <utility>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 10, /*kernel_size=*/5)),
        conv2(torch::nn::Conv2dOptions(10, 20, /*kernel_size=*/5)),
        fc1(320, 50),
        fc2(50, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2->forward(x), 2));
    x = torch::relu(fc1->forward(x.view({-1, 320})));
    return torch::log_softmax(fc2->forward(x), /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

struct Bars : torch::data::datasets::Dataset<Bars> {
  torch::data::Example<> get(std::size_t index) override {
    const auto length = static_cast<std::int64_t>(index % 10);
    auto image = torch::zeros({1, 28, 28});
    image.slice(1, 12, 16).slice(2, 2, 4 + 2 * length).fill_(1);
    return {image, torch::tensor(length)};
  }
  [[nodiscard]] torch::optional<std::size_t> size() const override {
    return 640;
  }
};

int main() {
  torch::manual_seed(1);
  Net net;
  lockstep::DataParallel model(net, {.devices = "cpu*2"});
  torch::optim::SGD optimizer(
      net.parameters(),
      torch::optim::SGDOptions(0.05).momentum(0.9));
  auto loader = torch::data::make_data_loader(
      Bars().map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(64));

  for (int epoch = 1; epoch <= 4; ++epoch) {
    double sum = 0;
    int batches = 0;
    for (const auto& batch : *loader) {
      optimizer.zero_grad();
      const auto output = model->forward(batch.data);
      const auto loss = torch::nll_loss(output, batch.target);
      loss.backward();
      optimizer.step();
      sum += loss.item<double>();
      ++batches;
    }
    std::printf("epoch %d: loss %.3f\n", epoch, sum / batches);
  }
}
