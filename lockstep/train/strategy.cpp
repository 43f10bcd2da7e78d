// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/strategy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {

LossFunction cross_entropy(double label_smoothing) {
  return [=](const at::Tensor& outputs, const at::Tensor& targets) {
    return at::cross_entropy_loss(
        outputs,
        targets,
        /*weight=*/{},
        at::Reduction::Mean,
        /*ignore_index=*/-100,
        label_smoothing);
  };
}

Strategy::Strategy(StrategyOptions options) : options_(std::move(options)) {
  if (!options_.test_loss) {
    options_.test_loss = options_.loss;
  }
}

void Strategy::set_training(bool on) {
  // Only when it changes: layers that a program froze stay as they are.
  if (net().is_training() != on) {
    net().train(on);
  }
}

StepResult Strategy::step(const Batch& batch) {
  const auto threads = share_threads();
  set_training(true);
  const at::Tensor outputs = forward(batch.images);
  const at::Tensor targets = batch.targets.to(outputs.device());
  const at::Tensor loss = options_.loss(outputs, targets);
  loss.backward();
  return measure(loss, outputs, targets);
}

StepResult Strategy::test(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const auto threads = share_threads();
  set_training(false);
  const at::Tensor outputs = forward(batch.images);
  const at::Tensor targets = batch.targets.to(outputs.device());
  return measure(options_.test_loss(outputs, targets), outputs, targets);
}

bool is_replicated(const StrategyOptions& options) {
  const bool several = options.devices.size() > 1;
  if (options.name == "single" && several) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.strategy",
         .message = format(
             "--strategy single uses one device; --devices names {}",
             options.devices.size()),
         .hint = "--strategy data_parallel uses all of them"});
  }
  return several || options.name == "data_parallel";
}

} // namespace lockstep::train
