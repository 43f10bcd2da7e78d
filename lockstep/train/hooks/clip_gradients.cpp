// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/clip_gradients.h"

#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/stack.h>

#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

// Of the parameters that the optimizer has, as Python's are called with.
std::vector<at::Tensor> gradients_of(const Optimizer& optimizer) {
  std::vector<at::Tensor> gradients;
  for (const ParamGroup& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params) {
      if (parameter.grad().defined()) {
        gradients.push_back(parameter.grad());
      }
    }
  }
  return gradients;
}

class ClipNorm final : public StepHook {
 public:
  explicit ClipNorm(double max_norm) : max_norm_(max_norm) {}

  [[nodiscard]] std::string text() const override {
    return format("gradients are clipped to a norm of {}", shortest(max_norm_));
  }
  void before_update(const StepScope& scope) override {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients = gradients_of(scope.optimizer);
    if (gradients.empty()) {
      return;
    }
    std::vector<at::Tensor> norms;
    norms.reserve(gradients.size());
    for (const at::Tensor& gradient : gradients) {
      norms.push_back(at::linalg_vector_norm(gradient, 2.0));
    }
    const at::Tensor norm = at::linalg_vector_norm(at::stack(norms), 2.0);
    // Python divides a number by a tensor: by its reciprocal.
    const at::Tensor scale =
        at::clamp(at::reciprocal(norm + 1e-6) * max_norm_, {}, 1.0);
    for (at::Tensor& gradient : gradients) {
      gradient.mul_(scale);
    }
  }

 private:
  double max_norm_;
};

class ClipValue final : public StepHook {
 public:
  explicit ClipValue(double bound) : bound_(bound) {}

  [[nodiscard]] std::string text() const override {
    return format(
        "gradients are cut to -{0} to {0}, each number by itself",
        shortest(bound_));
  }
  void before_update(const StepScope& scope) override {
    const at::NoGradGuard no_grad;
    for (at::Tensor& gradient : gradients_of(scope.optimizer)) {
      gradient.clamp_(-bound_, bound_);
    }
  }

 private:
  double bound_;
};

} // namespace

std::shared_ptr<StepHook> clip_norm(double max_norm) {
  return std::make_shared<ClipNorm>(max_norm);
}

std::shared_ptr<StepHook> clip_value(double bound) {
  return std::make_shared<ClipValue>(bound);
}

} // namespace lockstep::train
