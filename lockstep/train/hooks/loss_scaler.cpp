// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/loss_scaler.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kScale = "scale";
constexpr std::string_view kGrowthFactor = "growth_factor";
constexpr std::string_view kBackoffFactor = "backoff_factor";
constexpr std::string_view kGrowthInterval = "growth_interval";
constexpr std::string_view kGrowthTracker = "_growth_tracker";

double scaler_number(const ckpt::Value& saved, std::string_view key) {
  const ckpt::Value* const value = saved.find(key);
  const auto number =
      value == nullptr ? std::optional<double>() : value->number();
  if (!number) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format("the state of the scaler has no number '{}'", key),
         .detail = "E_BAD_STATE"});
  }
  return *number;
}

class LossScaler final : public StepHook {
 public:
  explicit LossScaler(const LossScalerOptions& options)
      : options_(options), scale_(static_cast<float>(options.init_scale)) {}

  [[nodiscard]] std::string text() const override {
    return "the loss is scaled for float16, as torch.amp.GradScaler does";
  }
  std::vector<StatePart> parts() override {
    return {
        {.key = "scaler",
         .save = [this](ValueBuilder& /*builder*/) { return save(); },
         .load = [this](const ckpt::Value& saved) { load(saved); },
         .if_missing = IfMissing::kWarn}};
  }
  [[nodiscard]] double loss_scale() const override {
    return scale_;
  }
  [[nodiscard]] bool skips_update() const override {
    return has_overflow_;
  }

  void before_update(const StepScope& scope) override {
    has_overflow_ = unscale(scope.optimizer);
    if (has_overflow_) {
      scale_ = times(options_.backoff_factor);
      tracker_ = 0;
    } else if (++tracker_ == options_.growth_interval) {
      const float grown = times(options_.growth_factor);
      scale_ = std::isfinite(grown) ? grown : scale_;
      tracker_ = 0;
    }
  }

 private:
  [[nodiscard]] float times(double factor) const {
    return static_cast<float>(scale_ * factor);
  }
  // Of the parameters that the optimizer has; true if one was not finite.
  [[nodiscard]] bool unscale(const Optimizer& optimizer) const {
    const at::NoGradGuard no_grad;
    std::map<std::pair<std::string, c10::ScalarType>, std::vector<at::Tensor>>
        alike;
    for (const ParamGroup& group : optimizer.param_groups()) {
      for (const at::Tensor& parameter : group.params) {
        if (const at::Tensor& grad = parameter.grad(); grad.defined()) {
          alike[{grad.device().str(), grad.scalar_type()}].push_back(grad);
        }
      }
    }
    // As Python has it: in double, then rounded.
    const auto inverse = static_cast<float>(1.0 / static_cast<double>(scale_));
    bool is_bad = false;
    for (auto& [place, gradients] : alike) {
      const auto here =
          at::TensorOptions(gradients.front().device()).dtype(at::kFloat);
      at::Tensor found = at::zeros({1}, here);
      at::_amp_foreach_non_finite_check_and_unscale_(
          gradients,
          found,
          at::full({1}, inverse, here));
      is_bad = found.item<float>() != 0 || is_bad;
    }
    return is_bad;
  }

  [[nodiscard]] ckpt::Value save() const {
    return ckpt::Value::dict(
        {{std::string(kScale), static_cast<double>(scale_)},
         {std::string(kGrowthFactor), options_.growth_factor},
         {std::string(kBackoffFactor), options_.backoff_factor},
         {std::string(kGrowthInterval), options_.growth_interval},
         {std::string(kGrowthTracker), tracker_}});
  }
  void load(const ckpt::Value& saved) {
    const LossScalerOptions loaded{
        .init_scale = scaler_number(saved, kScale),
        .growth_factor = scaler_number(saved, kGrowthFactor),
        .backoff_factor = scaler_number(saved, kBackoffFactor),
        .growth_interval =
            static_cast<std::int64_t>(scaler_number(saved, kGrowthInterval))};
    tracker_ = static_cast<std::int64_t>(scaler_number(saved, kGrowthTracker));
    options_ = loaded;
    scale_ = static_cast<float>(loaded.init_scale);
  }

  LossScalerOptions options_;
  float scale_;
  std::int64_t tracker_ = 0;
  /// Of the step that runs.
  bool has_overflow_ = false;
};

} // namespace

std::shared_ptr<StepHook> loss_scaler(const LossScalerOptions& options) {
  return std::make_shared<LossScaler>(options);
}

} // namespace lockstep::train
