// SPDX-License-Identifier: BSD-3-Clause
//
// ResNet18 on FashionMNIST, on one device or many: fashion IMAGES [DEVICES]
#include <iostream>
#include <numeric>
#include <vector>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;
namespace nn = torch::nn;

int main(int argc, char** argv) {
  torch::manual_seed(0);
  std::vector<std::int64_t> some(argc > 1 ? std::stoul(argv[1]) : 256);
  std::iota(some.begin(), some.end(), 0);
  const auto first = [some](std::int64_t /*epoch*/) { return some; };
  ls::Loader train_loader(
      ls::fashion_mnist(),
      {.batch_size = 64, .sampler = first});
  ls::Loader val_loader(
      ls::fashion_mnist("", {.train = false}),
      {.batch_size = 64, .sampler = first});
  const auto net =
      ls::make_model("resnet18", {.num_classes = 10, .in_channels = 1});
  ls::DataParallel model(net, {.devices = argc > 2 ? argv[2] : ""});
  const auto device = model->devices().front();
  model->to(device);
  torch::optim::SGD optimizer(
      model->parameters(),
      torch::optim::SGDOptions(0.01).momentum(0.9));
  std::vector<double> train_losses, val_losses, accuracies;

  const auto train = [&] {
    model->train();
    double total = 0;
    for (auto& [images, targets] : train_loader) {
      const auto labels = targets.to(device);
      optimizer.zero_grad();
      auto loss = torch::cross_entropy_loss(model->forward(images), labels);
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * double(labels.numel());
    }
    train_losses.push_back(total / double(some.size()));
  };

  const auto val = [&] {
    const torch::NoGradGuard no_grad;
    model->eval();
    double total = 0, correct = 0;
    for (auto& [images, targets] : val_loader) {
      const auto labels = targets.to(device);
      const auto output = model->forward(images);
      total += torch::cross_entropy_loss(output, labels).item<double>() *
               double(labels.numel());
      correct += output.argmax(1).eq(labels).sum().item<double>();
    }
    val_losses.push_back(total / double(some.size()));
    accuracies.push_back(100 * correct / double(some.size()));
  };

  std::int64_t parameters = 0;
  for (const auto& parameter : model->parameters()) {
    parameters += parameter.numel();
  }
  std::cout << parameters << " parameters\n";
  for (int epoch = 1; epoch <= 3; ++epoch) {
    train();
    val();
    std::cout << "epoch " << epoch << " done\n";
  }
  std::cout << train_losses.size() << " " << val_losses.size() << " "
            << accuracies.size() << "\n";
  std::cout << (train_losses.back() < train_losses.front()) << "\n";
  ls::save(model->module(), "fashion.pth");
}
