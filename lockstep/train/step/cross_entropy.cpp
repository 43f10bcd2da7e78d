// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/cross_entropy.h"

#include <memory>
#include <mutex>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

namespace lockstep::train {
namespace {

// What cross entropy takes for its classes: nothing, or a number for each.
class ClassWeights {
 public:
  explicit ClassWeights(const std::vector<double>& weights) {
    if (!weights.empty()) {
      weights_ = at::tensor(weights, at::TensorOptions(at::kDouble));
      placed_ = std::make_shared<Placed>();
    }
  }
  // On the device of `outputs`; copied there once. Threads: any, also with
  // copies of this.
  [[nodiscard]] at::Tensor beside(const at::Tensor& outputs) const {
    if (placed_ == nullptr) {
      return {};
    }
    const bool is_double = outputs.scalar_type() == at::kDouble;
    const at::ScalarType type = is_double ? at::kDouble : at::kFloat;
    const std::scoped_lock lock(placed_->mutex);
    at::Tensor& weights = placed_->weights;
    if (!weights.defined() || weights.device() != outputs.device() ||
        weights.scalar_type() != type) {
      const c10::InferenceMode no_inference(false); // training may be next
      weights = weights_.to(outputs.device(), type);
    }
    return weights;
  }
  [[nodiscard]] bool is_empty() const {
    return !weights_.defined();
  }
  // Of targets that are classes.
  [[nodiscard]] double sum_over(
      const at::Tensor& targets,
      std::int64_t ignore_index) const {
    const at::Tensor all = targets.flatten().to(at::kCPU);
    const at::Tensor is_counted = all.ge(0)
                                      .logical_and(all.lt(weights_.numel()))
                                      .logical_and(all.ne(ignore_index));
    return weights_.index_select(0, all.masked_select(is_counted))
        .sum()
        .item<double>();
  }

 private:
  /// As they were needed last.
  struct Placed {
    std::mutex mutex;
    at::Tensor weights;
  };

  at::Tensor weights_;
  std::shared_ptr<Placed> placed_;
};

} // namespace

LossFunction cross_entropy(
    double label_smoothing,
    std::int64_t ignore_index,
    const std::vector<double>& class_weights) {
  return [=, weights = ClassWeights(class_weights)](
             const at::Tensor& outputs,
             const at::Tensor& targets) {
    return at::cross_entropy_loss(
        outputs,
        targets,
        weights.beside(outputs),
        at::Reduction::Mean,
        ignore_index,
        label_smoothing);
  };
}

TargetCount counted_divisor(
    std::int64_t ignore_index,
    const std::vector<double>& class_weights) {
  return [ignore_index,
          weights = ClassWeights(class_weights)](const at::Tensor& targets) {
    const auto samples = static_cast<double>(targets.size(0));
    if (targets.is_floating_point() || targets.numel() == 0) {
      return samples;
    }
    if (!weights.is_empty()) {
      return weights.sum_over(targets, ignore_index);
    }
    // Exactly the samples where all is counted.
    const auto counted = targets.ne(ignore_index).sum().item<std::int64_t>();
    return samples * static_cast<double>(counted) /
           static_cast<double>(targets.numel());
  };
}

} // namespace lockstep::train
