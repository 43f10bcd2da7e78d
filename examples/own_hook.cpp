// SPDX-License-Identifier: BSD-3-Clause
//
// Something of one's own in each step: noise in the gradients, which gets less
// (Neelakantan et al. 2015): that of a step is the same on every rank, and in a
// run that goes on. The settings clip them, too.
#include <cmath>
#include <iostream>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include "lockstep/data/made_dataset.h"
#include "lockstep/train/trainer.h"

using namespace lockstep::train;

struct GradientNoise : StepHook {
  std::string text() const override {
    return "gradients get noise";
  }
  void before_update(const StepScope& scope) override {
    torch::NoGradGuard no_grad;
    auto generator = at::detail::createCPUGenerator(scope.step);
    for (auto& parameter : scope.module.parameters()) {
      if (auto& gradient = parameter.mutable_grad(); gradient.defined()) {
        const auto noise = torch::randn(gradient.sizes(), generator);
        gradient += noise * (0.01 / std::sqrt(scope.step));
      }
    }
  }
};

int main() {
  const TrainConfig config{
      .batch_size = 16,
      .devices = "cpu",
      .task = "regression",
      .epochs = 20,
      .lr = 0.05,
      .accumulate = 2,
      .clip_grad = 1.0,
      .ema = 0.9,
      .output = "noisy"};
  torch::manual_seed(0);
  const auto x = torch::rand({128, 4});
  const auto data =
      lockstep::as_dataset(lockstep::make_dataset(x, x.sum(1, true)));
  const OwnParts parts{
      .model = torch::nn::Linear(4, 1),
      .train_data = data,
      .test_data = data};
  const auto noise = std::make_shared<GradientNoise>();
  Trainer trainer(config, {.own = parts, .hooks = {noise}});
  const TrainResult result = trainer.run();
  const bool has_learned = result.test && result.test->loss < 0.5;
  std::cout << result.steps << " updates, "
            << (has_learned ? "learned" : "not learned") << "\n";
}
