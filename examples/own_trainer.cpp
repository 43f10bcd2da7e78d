// SPDX-License-Identifier: BSD-3-Clause
//
// The trainer with parts of one's own: a module, its loss, a number that the
// checkpoints hold, and an observer. Trains, and then goes on, on two replicas.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/data/open_dataset.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/trainer.h"

using namespace lockstep::train;
namespace nn = torch::nn;

// As anybody writes it: no clone, no base class but LibTorch's.
struct Net : nn::Module {
  torch::Tensor forward(const torch::Tensor& images) {
    return second(torch::tanh(first(images.flatten(1))));
  }
  nn::Linear first = register_module("first", nn::Linear(28 * 28, 32));
  nn::Linear second = register_module("second", nn::Linear(32, 10));
};

struct Printer : Observer {
  void on_start(const StartRecord& start) override {
    std::cout << "begins with epoch " << start.epoch << "\n";
  }
  void on_epoch(const EpochRecord& epoch) override {
    std::cout << "  " << epoch.samples << " images in " << epoch.step
              << " steps, lr " << epoch.lr << "\n";
  }
};

int main() {
  TrainConfig config{
      .batch_size = 32,
      .max_train_samples = 320,
      .max_eval_samples = 100,
      .devices = "cpu*2",
      .threads = 2,
      .lr = 0.01,
      .lr_step_size = 2,
      .output = "own_run",
      .resume = "auto"};
  const auto hinge = [](const torch::Tensor& outputs, const torch::Tensor& y) {
    return torch::multi_margin_loss(outputs, y);
  };
  const auto data = lockstep::open_dataset("fashion-mnist", "");
  torch::manual_seed(0); // for the weights: `config.seed` orders the images
  std::int64_t starts = 0;
  for (const int epochs : {2, 4}) {
    config.epochs = epochs;
    TrainerOptions options{
        .observers = {std::make_shared<Printer>()},
        .own =
            {.model = std::make_shared<Net>(),
             .train_data = data.train,
             .test_data = data.test,
             .task = {.loss = hinge, .metrics = {lockstep::accuracy()}}},
        .parts = {number_part("starts", starts)}};
    Trainer trainer(config, options);
    std::cout << "start number " << ++starts << "\n"; // the file held 1 less
    trainer.run();
  }
}
