// SPDX-License-Identifier: BSD-3-Clause
//
// One device and many: what is saved, and how it is loaded again:
//   checkpoint [DEVICES]
#include <iostream>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;
namespace nn = torch::nn;

struct MyModule : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return fc->forward(x);
  }
  nn::Linear fc = register_module("fc", nn::Linear(3, 5));
};

int main(int argc, char** argv) {
  const char* devices = argc > 1 ? argv[1] : "";
  torch::manual_seed(0);
  ls::DataParallel model(ls::make_module<MyModule>(), {.devices = devices});
  model->to(model->devices().front());
  ls::SGD optimizer(*model, {.lr = 0.01, .momentum = 0.9});
  const int epoch = 0;
  model->forward(torch::ones({4, 3})).square().mean().backward();
  optimizer.step();
  double best = 0.5;

  // The whole state of the training, with the weights of the inner module.
  ls::save(
      {{"epoch", epoch + 1},
       {"best_mIoU", best},
       {"state_dict", model->module()},
       {"optimizer", optimizer}},
      "checkpoint.pth.tar");
  ls::save(model, "wrapped.pth");

  // Goes on.
  const auto checkpoint =
      ls::load("checkpoint.pth.tar", {.map_location = "cpu"});
  best = checkpoint["best_mIoU"].to<double>();
  ls::load_weights(*model, checkpoint);
  ls::load_state(optimizer, checkpoint["optimizer"]);
  std::cout << "epoch " << checkpoint["epoch"] << " best " << best << "\n";
  for (auto& group : optimizer.param_groups()) {
    group.set_lr(group.lr() / 2);
    std::cout << "lr " << group.lr() << "\n";
  }

  // Weights with "module." into a bare module.
  MyModule net;
  const auto state_dict = ls::load("wrapped.pth", {.map_location = "cpu"});
  std::cout << ls::ckpt::Value(state_dict.keys()) << "\n";
  try {
    ls::load_state_dict(net, state_dict);
  } catch (const ls::Exception& error) {
    std::cout << error.error().message << "\n";
  }
  ls::load_weights(net, state_dict); // takes "module." off
  std::cout << torch::equal(
                   net.fc->weight.cpu(),
                   model->module()->fc->weight.cpu())
            << "\n";

  // By position: the first tensors of a file under other names.
  nn::Sequential other(nn::Linear(3, 5), nn::Linear(5, 1));
  ls::load_weights(*other, state_dict, {.by_position = true, .first = 2});
  std::cout << torch::equal(other->parameters()[0], net.fc->weight) << "\n";
}
