// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/weight_average.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/core/ScalarType.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::train {
namespace {

// How one average is made of all that came before it.
struct AverageKind {
  std::string_view key = {};
  std::string_view updates_key = {};
  /// Of the buffers, too: those of a batch norm belong to the weights.
  bool has_buffers = false;
};

class AveragedWeights : public StepHook {
 public:
  AveragedWeights(torch::nn::Module& module, const AverageKind& kind)
      : module_(module), kind_(kind) {}

  std::vector<StatePart> parts() override {
    StatePart weights{
        .key = std::string(kind_.key),
        .save =
            [this](ValueBuilder& builder) {
              return builder.state_dict(averaged());
            },
        .load = [this](const ckpt::Value& saved) { load(saved); },
        .if_missing = IfMissing::kWarn};
    StatePart updates = number_part(std::string(kind_.updates_key), updates_);
    updates.if_missing = IfMissing::kIgnore;
    return {std::move(weights), std::move(updates)};
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

 protected:
  /// `mix(average, now)` changes an average; the first one is a copy.
  template <class Mix>
  void update(const Mix& mix) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> now = averaged_tensors();
    for (std::size_t i = 0; i < average_.size(); ++i) {
      mix(average_[i], now[i].detach());
    }
    if (updates_++ == 0) {
      average_ = copied_weights();
    }
  }
  [[nodiscard]] std::int64_t updates() const {
    return updates_;
  }

 private:
  [[nodiscard]] std::vector<at::Tensor> averaged_tensors() const {
    std::vector<at::Tensor> tensors = module_.parameters();
    if (kind_.has_buffers) {
      const auto add = [&](const torch::nn::Module& module) {
        for (const auto& [name, buffer] : saved_buffers_of(module)) {
          tensors.push_back(buffer);
        }
      };
      add(module_);
      for (const auto& part : module_.modules(/*include_self=*/false)) {
        add(*part);
      }
    }
    return tensors;
  }
  [[nodiscard]] std::vector<at::Tensor> copied_weights() const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> copies;
    for (const at::Tensor& tensor : averaged_tensors()) {
      copies.push_back(tensor.detach().clone());
    }
    return copies;
  }
  // The values change and not the tensors: recordings of steps and replicas
  // hold these.
  void write(const std::vector<at::Tensor>& values) const {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> tensors = averaged_tensors();
    for (std::size_t i = 0; i < values.size(); ++i) {
      tensors[i].copy_(values[i]);
    }
  }
  // The module's state with the averages in the place of the weights; before
  // the first update the weights.
  [[nodiscard]] StateDict averaged() const {
    std::unordered_map<const void*, const at::Tensor*> averages;
    const std::vector<at::Tensor> tensors = averaged_tensors();
    for (std::size_t i = 0; i < average_.size(); ++i) {
      if (tensors[i].numel() > 0) {
        averages.emplace(tensors[i].const_data_ptr(), &average_[i]);
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
    load_fitting(module_, saved); // torchvision's names begin with "module."
    average_ = copied_weights();
    updates_ = 1; // at least, if the file does not say it
    load_state_dict(module_, weights);
  }

  torch::nn::Module& module_;
  AverageKind kind_;
  /// In the order of `averaged_tensors`; empty before the first update.
  std::vector<at::Tensor> average_;
  /// During a test.
  std::vector<at::Tensor> weights_;
  std::int64_t updates_ = 0;
};

class WeightAverage final : public AveragedWeights {
 public:
  WeightAverage(torch::nn::Module& module, double decay)
      : AveragedWeights(
            module,
            {.key = kAverageKey, .updates_key = "ema_updates"}),
        decay_(decay) {}

  [[nodiscard]] std::string text() const override {
    return format(
        "tests are of the average of the weights, which decays by {} each step",
        shortest(decay_));
  }
  void after_update(const StepScope& /*scope*/) override {
    update([this](at::Tensor& average, const at::Tensor& now) {
      if (at::isFloatingType(now.scalar_type()) ||
          at::isComplexType(now.scalar_type())) {
        average.lerp_(now, 1 - decay_);
      } else {
        average.copy_(average * decay_ + now * (1 - decay_));
      }
    });
  }

 private:
  double decay_;
};

class MeanOfEpochs final : public AveragedWeights {
 public:
  MeanOfEpochs(torch::nn::Module& module, std::int64_t start)
      : AveragedWeights(
            module,
            {.key = kMeanKey,
             .updates_key = "swa_updates",
             .has_buffers = true}),
        start_(start) {}

  [[nodiscard]] std::string text() const override {
    return format(
        "from epoch {} on tests are of the mean of the weights after the "
        "epochs",
        start_);
  }
  void end_steps(const StepScope& scope) override {
    if (scope.epoch < start_) {
      return;
    }
    const at::Tensor count = at::full({}, updates() + 1, at::kLong);
    update([&](at::Tensor& average, const at::Tensor& now) {
      if (now.scalar_type() == at::kBool) { // a mask
        average.copy_(now);
        return;
      }
      // As Python's get_swa_avg_fn has it; the infinities of a mask stay.
      const at::Tensor mean =
          average + (now - average) / count.to(average.device());
      average.copy_(
          at::where(average.isinf().logical_and(average.eq(now)), now, mean));
    });
  }

 private:
  std::int64_t start_;
};

} // namespace

std::shared_ptr<StepHook> weight_average(
    torch::nn::Module& module,
    double decay) {
  return std::make_shared<WeightAverage>(module, decay);
}

std::shared_ptr<StepHook> mean_of_epochs(
    torch::nn::Module& module,
    std::int64_t start) {
  return std::make_shared<MeanOfEpochs>(module, start);
}

} // namespace lockstep::train
