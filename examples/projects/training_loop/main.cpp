// SPDX-License-Identifier: BSD-3-Clause
//
// A training loop of one's own: a model of Lockstep on two replicas, stock
// torch::optim, a checkpoint that Python reads too, and its weights loaded into
// a fresh model.
#include <iostream>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;

int main() {
  torch::manual_seed(0);
  const auto images = torch::rand({64, 1, 28, 28});
  const auto targets = torch::arange(64) % 10;

  auto net = ls::make_model("mlp", {.num_classes = 10, .in_channels = 1});
  ls::DataParallel model(net, {.devices = "cpu*2"});
  torch::optim::SGD sgd(
      model->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));

  double first = 0;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    sgd.zero_grad();
    const auto loss =
        torch::cross_entropy_loss(model->forward(images), targets);
    loss.backward(); // the replicas run backward in their threads
    sgd.step();
    last = loss.item<double>();
    first = step == 0 ? last : first;
  }
  std::cout << "loss fell: " << std::boolalpha << (last < 0.5 * first) << "\n";

  const auto written =
      ls::checkpoint({{"epoch", 1}, {"state_dict", ls::state_dict(*net)}});
  ls::save(written, "checkpoint.pth.tar");

  auto fresh = ls::make_model("mlp", {.num_classes = 10, .in_channels = 1});
  ls::load_weights(*fresh, "checkpoint.pth.tar");
  net->eval();
  fresh->eval();
  const auto same = torch::equal(fresh->forward(images), net->forward(images));
  std::cout << "same outputs after loading: " << same << "\n";
  try {
    ls::load_weights(*fresh, "absent.pth.tar");
  } catch (const ls::Exception& error) {
    std::cout << error.what() << "\n"; // what, where, what to do
  }
}
