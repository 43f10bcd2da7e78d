// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loss_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/aminmax.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

bool is_all_finite(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) {
    return true;
  }
  // One pass without a copy; a NaN comes out of it as a NaN.
  const auto [low, high] = at::aminmax(tensor.detach());
  return std::isfinite(low.item<double>()) &&
         std::isfinite(high.item<double>());
}

std::string name_of(double loss) {
  return std::isnan(loss) ? "nan" : loss < 0 ? "-inf" : "inf";
}

} // namespace

bool has_finite_state(const torch::nn::Module& module) {
  return std::ranges::all_of(module.parameters(), is_all_finite) &&
         std::ranges::all_of(module.buffers(), is_all_finite);
}

bool is_finite(const EpochRecord& record) {
  return std::isfinite(record.train.loss) && std::isfinite(record.test.loss);
}

LossWatch::LossWatch(
    const TrainConfig& config,
    std::function<std::string()> checkpoint)
    : config_(config), checkpoint_(std::move(checkpoint)) {}

void LossWatch::bad_step(const StepRecord& record) {
  ++bad_steps_;
  if (config_.on_nan == "stop") {
    refuse(format(
        "the loss {} in epoch {}, step {} of {}, with lr {}",
        std::isfinite(record.loss)
            ? std::string("of another process is not finite")
            : "is " + name_of(record.loss),
        record.epoch,
        record.batch + 1,
        record.batches,
        shortest(record.lr)));
  }
}

std::string LossWatch::end_epoch(const EpochRecord& record) {
  const std::int64_t bad_steps = std::exchange(bad_steps_, 0);
  if (is_finite(record)) {
    return {};
  }
  if (config_.on_nan == "stop") {
    refuse(format(
        "the loss of the test after epoch {} is {}, with lr {}",
        record.epoch,
        name_of(record.test.loss),
        shortest(record.lr)));
  }
  return format(
      "epoch {}: the loss was not a finite number in {}{}; it cannot be "
      "the best epoch",
      record.epoch,
      counted(static_cast<std::uint64_t>(bad_steps), "step"),
      std::isfinite(record.test.loss) ? "" : " and in the test");
}

void LossWatch::check_state(const torch::nn::Module& module, std::int64_t step)
    const {
  if (config_.on_nan == "stop" && !has_finite_state(module)) {
    refuse(format("weights are not finite after step {}", step));
  }
}

void LossWatch::refuse(std::string what) const {
  const std::string checkpoint = checkpoint_();
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train",
       .message =
           what + (checkpoint.empty()
                       ? "; no checkpoint was saved before"
                       : "; the last checkpoint is from before and stays"),
       .hint = checkpoint.empty()
                   ? "a lower --lr often helps; --on-nan warn goes on"
                   : format(
                         "a new run with a lower --lr may begin with "
                         "--initial-checkpoint {}; --on-nan warn goes on",
                         checkpoint),
       .path = checkpoint,
       .detail = "E_NAN_LOSS"});
}

} // namespace lockstep::train
