// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/weight_average.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/bridge.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::train {
namespace {

class WeightAverage final : public StepHook {
 public:
  WeightAverage(torch::nn::Module& module, double decay)
      : module_(module), decay_(decay) {}

  [[nodiscard]] std::string text() const override {
    return format(
        "tests are of the average of the weights, which decays by {} each step",
        shortest(decay_));
  }
  std::vector<StatePart> parts() override {
    StatePart weights{
        .key = std::string(kAverageKey),
        .save =
            [this](ValueBuilder& builder) {
              return builder.state_dict(averaged());
            },
        .load = [this](const ckpt::Value& saved) { load(saved); },
        .if_missing = IfMissing::kWarn};
    StatePart updates = number_part("ema_updates", updates_);
    updates.if_missing = IfMissing::kIgnore;
    return {std::move(weights), std::move(updates)};
  }

  void after_update(const StepScope& /*scope*/) override {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> parameters = module_.parameters();
    for (std::size_t i = 0; i < average_.size(); ++i) {
      const at::Tensor now = parameters[i].detach();
      if (at::isFloatingType(now.scalar_type()) ||
          at::isComplexType(now.scalar_type())) {
        average_[i].lerp_(now, 1 - decay_);
      } else {
        average_[i].copy_(average_[i] * decay_ + now * (1 - decay_));
      }
    }
    if (updates_++ == 0) {
      average_ = copied_weights();
    }
  }
  void begin_test(const StepScope& /*scope*/) override {
    if (updates_ > 0) { // else there is no average yet
      weights_ = copied_weights();
      write(average_);
    }
  }
  void end_test(const StepScope& /*scope*/) override {
    write(std::exchange(weights_, {}));
  }

 private:
  [[nodiscard]] std::vector<at::Tensor> copied_weights() const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> copies;
    for (const at::Tensor& parameter : module_.parameters()) {
      copies.push_back(parameter.detach().clone());
    }
    return copies;
  }
  // The values change and not the tensors: recordings of steps and replicas
  // hold these.
  void write(const std::vector<at::Tensor>& values) const {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> parameters = module_.parameters();
    for (std::size_t i = 0; i < values.size(); ++i) {
      parameters[i].copy_(values[i]);
    }
  }
  // The module's state with the averages in the place of the weights; before
  // the first update the weights.
  [[nodiscard]] StateDict averaged() const {
    std::unordered_map<const void*, const at::Tensor*> averages;
    const std::vector<at::Tensor> parameters = module_.parameters();
    for (std::size_t i = 0; i < average_.size(); ++i) {
      if (parameters[i].numel() > 0) {
        averages.emplace(parameters[i].const_data_ptr(), &average_[i]);
      }
    }
    StateDict weights = state_dict(module_);
    for (auto& [name, tensor] : weights.entries) {
      const auto found = averages.find(tensor.const_data_ptr());
      if (found != averages.end()) {
        tensor = *found->second;
      }
    }
    return weights;
  }
  // Through the module, which knows what a file may call its weights.
  void load(const ckpt::Value& saved) {
    const at::NoGradGuard no_grad;
    StateDict weights = state_dict(module_);
    for (auto& [name, tensor] : weights.entries) {
      tensor = tensor.clone();
    }
    load_state_dict(module_, saved);
    average_ = copied_weights();
    updates_ = 1; // at least, if the file does not say it
    load_state_dict(module_, weights);
  }

  torch::nn::Module& module_;
  double decay_;
  /// In the order of the module's parameters; empty before the first update.
  std::vector<at::Tensor> average_;
  /// During a test.
  std::vector<at::Tensor> weights_;
  std::int64_t updates_ = 0;
};

} // namespace

std::shared_ptr<StepHook> weight_average(
    torch::nn::Module& module,
    double decay) {
  return std::make_shared<WeightAverage>(module, decay);
}

} // namespace lockstep::train
