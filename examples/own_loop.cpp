// SPDX-License-Identifier: BSD-3-Clause
//
// A training loop of one's own around stock LibTorch: stopped inside an epoch,
// it goes on in a new object with the bits of a loop that never stopped.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/train/checkpoints.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/state_parts.h"

using namespace lockstep::train;
using torch::nn::Dropout, torch::nn::Linear, torch::optim::SGDOptions;

struct Loop {
  torch::Tensor inputs = torch::linspace(-9, 9, 768).sin().view({96, 8});
  torch::Tensor targets = inputs.prod(1, /*keepdim=*/true);
  torch::nn::Sequential net{Linear(8, 16), Dropout(0.2), Linear(16, 1)};
  torch::optim::SGD sgd{net->parameters(), SGDOptions(0.1).momentum(0.9)};
  std::int64_t step = 0; // 6 steps of 16 samples are an epoch

  // Up to step `last`, from the beginning or from what `folder` holds.
  void run(const std::string& folder, std::int64_t last) {
    RunState state;
    state.add(number_part("step", step)).add(model_part(*net));
    state.add(optimizer_part(sgd)).add(generator_part()); // for the dropout
    if (const auto found = find_checkpoint(folder)) {
      state.load(found->root);
      std::cout << folder << ": goes on after step " << step << "\n";
    }
    CheckpointWriter writer(folder);
    while (step < last) {
      const auto left =
          sample_order(96, {.epoch = step / 6, .consumed = step % 6 * 16});
      const auto batches = torch::tensor(left).split(16);
      for (std::size_t i = 0; i < batches.size() && step < last; ++i, ++step) {
        const auto output = net->forward(inputs.index_select(0, batches[i]));
        sgd.zero_grad();
        torch::mse_loss(output, targets.index_select(0, batches[i])).backward();
        sgd.step();
      }
      writer.write(state.save(), {.step = step}); // while training goes on
    }
    writer.finish();
  }
};

int main() {
  torch::manual_seed(0);
  Loop().run("straight", 20);
  torch::manual_seed(0);
  Loop().run("stopped", 9);
  Loop().run("stopped", 20);
  auto& fs = lockstep::real_fs();
  const auto one = lockstep::read_text(fs, "straight/checkpoint.pth.tar");
  const auto two = lockstep::read_text(fs, "stopped/checkpoint.pth.tar");
  std::cout << (*one == *two ? "the same" : "other") << " bits in the files\n";
}
