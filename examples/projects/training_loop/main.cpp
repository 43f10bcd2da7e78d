// SPDX-License-Identifier: BSD-3-Clause
//
// A training loop of one's own, with stock torch::optim:
//   training_loop [FILE]    FILE is loaded in the end
#include <cstdio>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;

int main(int argc, char** argv) try {
  torch::manual_seed(0);
  auto net = ls::make_model("mlp", {.num_classes = 10, .in_channels = 1});
  ls::DataParallel model(net, {.devices = "cpu*2"});
  torch::optim::SGD sgd(model->parameters(), /*lr=*/0.1);
  const auto sharing = model->share_threads(sgd); // optional: faster
  const auto images = torch::rand({64, 1, 28, 28});
  const auto targets = torch::arange(64) % 10;
  for (int step = 1; step <= 5; ++step) {
    sgd.zero_grad();
    auto loss = torch::cross_entropy_loss(model->forward(images), targets);
    loss.backward(); // the replicas run backward in their threads
    sgd.step();
    std::printf("step %d: loss %.2f\n", step, loss.item<double>());
  }
  ls::save({{"state_dict", net}, {"optimizer", sgd}}, "checkpoint.pth.tar");
  // Any file: with or without "module.", a whole model, from GPUs not here.
  ls::load_weights(*net, argc > 1 ? argv[1] : "checkpoint.pth.tar");
} catch (const ls::Exception& error) {
  std::fprintf(stderr, "%s\n", error.what()); // what, where, what to do
  return 1;
}
