// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/loss_watch.h"

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

/// A run without a test has nothing that is not finite there.
bool has_finite_test(const EpochRecord& record) {
  return std::isfinite(record.test.value_or(Score()).loss);
}

/// Of a number that is not finite.
std::string name_of(double loss) {
  return std::isnan(loss) ? "nan" : loss < 0 ? "-inf" : "inf";
}

} // namespace

std::set<std::string> infinite_constants(const torch::nn::Module& module) {
  std::set<std::string> names;
  for (const auto& tensors :
       {module.named_parameters(), module.named_buffers()}) {
    for (const auto& item : tensors) {
      if (!item.value().requires_grad() && !is_all_finite(item.value())) {
        names.insert(item.key());
      }
    }
  }
  return names;
}

bool has_finite_state(
    const torch::nn::Module& module,
    const std::set<std::string>& left_out) {
  const auto is_well = [&](const auto& item) {
    return left_out.contains(item.key()) || is_all_finite(item.value());
  };
  return std::ranges::all_of(module.named_parameters(), is_well) &&
         std::ranges::all_of(module.named_buffers(), is_well);
}

bool is_finite(const EpochRecord& record) {
  return std::isfinite(record.train.loss) && has_finite_test(record);
}

LossWatch::LossWatch(
    const TrainConfig& config,
    const dist::ProcessGroup& group,
    const torch::nn::Module& module,
    std::function<std::string()> checkpoint)
    : config_(config),
      group_(group),
      checkpoint_(std::move(checkpoint)),
      left_out_(
          stops() ? infinite_constants(module) : std::set<std::string>()) {}

bool LossWatch::stops() const {
  return config_.on_nan == "stop";
}

void LossWatch::bad_step(const StepRecord& record) {
  ++bad_steps_;
  if (stops()) {
    refuse(format(
        "the loss is {} in epoch {}, step {} of {}, with lr {}",
        name_of(record.loss),
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
  if (stops()) {
    // Steps that were not finite end the run at once, unless they come from a
    // checkpoint inside the epoch.
    const bool is_test = !has_finite_test(record);
    refuse(format(
        "the loss of the {} epoch {} is {}, with lr {}",
        is_test ? "test after" : "training in",
        record.epoch,
        name_of(
            is_test ? record.test.value_or(Score()).loss : record.train.loss),
        shortest(record.lr)));
  }
  return format(
      "epoch {}: the loss was not a finite number in {}{}; it cannot be "
      "the best epoch",
      record.epoch,
      counted(static_cast<std::uint64_t>(bad_steps), "step"),
      has_finite_test(record) ? "" : " and in the test");
}

void LossWatch::check_state(const torch::nn::Module& module, std::int64_t step)
    const {
  if (!stops()) {
    return;
  }
  const bool is_finite = has_finite_state(module, left_out_);
  if (group_.any(!is_finite)) {
    refuse(format(
        "{} are not finite after step {}",
        is_finite ? "the weights of another process" : "the weights",
        step));
  }
}

void LossWatch::check_loaded(
    const torch::nn::Module& module,
    const std::string& path) const {
  if (stops() && group_.any(!has_finite_state(module, left_out_))) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = "the checkpoint has weights that are not finite numbers: "
                    "no training brings them back",
         .hint = "--resume FILE goes on from an earlier checkpoint, --resume "
                 "best from the best one, if there is one from before",
         .path = path,
         .detail = "E_NAN_LOSS"});
  }
}

void LossWatch::refuse(const std::string& what) const {
  const std::string checkpoint = checkpoint_();
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train",
       .message = what + (checkpoint.empty()
                              ? "; no checkpoint was saved before"
                              : "; the last checkpoint is from before and is "
                                "kept"),
       .hint = checkpoint.empty()
                   ? "a lower --lr often helps; with --on-nan warn the run "
                     "would go on"
                   : format(
                         "a lower --lr often helps: --initial-checkpoint {} "
                         "begins a new run with it; with --on-nan warn this "
                         "run would go on",
                         checkpoint),
       .path = checkpoint,
       .detail = "E_NAN_LOSS"});
}

} // namespace lockstep::train
