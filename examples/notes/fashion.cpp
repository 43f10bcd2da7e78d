// SPDX-License-Identifier: BSD-3-Clause
//
// ResNet18 on FashionMNIST, on one device or many: fashion IMAGES [DEVICES]
#include <iostream>
#include <ranges>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;
namespace nn = torch::nn;

int main(int argc, char** argv) {
  torch::manual_seed(0);
  const int count = argc > 1 ? std::stoi(argv[1]) : 256;
  const auto some = std::views::iota(0, count);
  const auto train_set = ls::fashion_mnist();
  const auto val_set = ls::fashion_mnist("", {.train = false});
  ls::Loader train_loader(ls::subset(train_set, some), {.batch_size = 64});
  ls::Loader val_loader(ls::subset(val_set, some), {.batch_size = 64});
  const auto net =
      ls::make_model("resnet18", {.num_classes = 10, .in_channels = 1});
  ls::DataParallel model(net, {.devices = argc > 2 ? argv[2] : ""});
  const auto device = model->devices().front();
  model->to(device);
  nn::CrossEntropyLoss criterion;
  ls::SGD optimizer(*model, {.lr = 0.01, .momentum = 0.9});
  std::vector<double> train_losses, val_losses, accuracies;

  const auto train = [&] {
    model->train();
    double sum = 0;
    for (auto& [images, targets] : train_loader) {
      const auto labels = targets.to(device);
      optimizer.zero_grad();
      const auto loss = criterion(model->forward(images), labels);
      loss.backward();
      optimizer.step();
      sum += loss.item<double>() * double(labels.size(0));
    }
    train_losses.push_back(sum / count);
  };

  const auto val = [&] {
    const torch::NoGradGuard no_grad;
    model->eval();
    double sum = 0, correct = 0;
    for (auto& [images, targets] : val_loader) {
      const auto labels = targets.to(device);
      const auto output = model->forward(images);
      sum += criterion(output, labels).item<double>() * double(labels.size(0));
      correct += output.argmax(1).eq(labels).sum().item<double>();
    }
    val_losses.push_back(sum / count);
    accuracies.push_back(100 * correct / count);
  };

  std::cout << ls::count_parameters(*model) << " parameters\n";
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
