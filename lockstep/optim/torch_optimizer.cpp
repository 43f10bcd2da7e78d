// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/torch_optimizer.h"

#include <utility>

#include <torch/optim/optimizer.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/internal/torch_memory.h"
#include "lockstep/optim/internal/two_sided_groups.h"

namespace lockstep {
namespace {

/// What `state_dict` tells of LibTorch's optimizer, behind our interface.
class TorchOptimizer final : public Optimizer {
 public:
  TorchOptimizer(
      std::shared_ptr<torch::optim::Optimizer> optimizer,
      bool counts_steps)
      : optimizer_(std::move(optimizer)),
        both_(internal::memory_of(*optimizer_)) {
    if (counts_steps) {
      step_calls_ = 0;
    }
  }

  [[nodiscard]] std::optional<std::int64_t> step_calls()
      const noexcept override {
    return step_calls_;
  }
  [[nodiscard]] const void* identity() const noexcept override {
    return optimizer_.get();
  }

  void apply_options() override {
    both_->refuse_two_changes(take_changes());
    set_options(*optimizer_, both_->groups);
    both_->mark_as_seen(internal::torch_groups(*optimizer_));
  }
  void step() override {
    apply_options();
    if (step_calls_) {
      ++*step_calls_;
    }
    optimizer_->step();
    count_changes();
  }
  void zero_grad(bool set_to_none) override {
    optimizer_->zero_grad(set_to_none);
  }
  [[nodiscard]] ckpt::Value state_dict() const override {
    take_changes();
    return internal::pack_torch(*optimizer_, both_->groups);
  }
  void load_state_dict(const ckpt::Value& state) override {
    // Ours may be another memory than LibTorch's: torch_memory.h.
    both_->groups = lockstep::load_state_dict(*optimizer_, state);
    both_->mark_as_seen(internal::torch_groups(*optimizer_));
  }
  void use_workers(Workers /*workers*/) override {}
  [[nodiscard]] bool counts_writes() const noexcept override {
    return true; // count_changes
  }
  std::vector<ParamGroup>& param_groups() noexcept override {
    take_changes();
    return both_->groups;
  }
  [[nodiscard]] const std::vector<ParamGroup>& param_groups()
      const noexcept override {
    take_changes();
    return both_->groups;
  }

 private:
  // LibTorch's write through `p.data()`, which LibTorch's version counters do
  // not see; who holds copies of the parameters asks them, and so does a graph
  // that saved them.
  void count_changes() const {
    for (const ParamGroup& group : both_->groups) {
      for (const at::Tensor& param : group.params) {
        if (param.grad().defined() && !param.is_inference()) {
          param.unsafeGetTensorImpl()->bump_version();
        }
      }
    }
  }

  // Returns LibTorch's groups.
  std::vector<ParamGroup> take_changes() const {
    return internal::take_changes(*optimizer_, *both_);
  }

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::shared_ptr<TwoSidedGroups> both_;
  /// None: others step LibTorch's optimizer.
  std::optional<std::int64_t> step_calls_ = {};
};

} // namespace

std::unique_ptr<Optimizer> from_torch(
    std::shared_ptr<torch::optim::Optimizer> optimizer) {
  if (optimizer == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.create",
         .message = "from_torch: expected an optimizer, got null"});
  }
  const bool is_alone = optimizer.use_count() == 1;
  return std::make_unique<TorchOptimizer>(std::move(optimizer), is_alone);
}

std::unique_ptr<Optimizer> from_torch(torch::optim::Optimizer& optimizer) {
  return std::make_unique<TorchOptimizer>(
      std::shared_ptr<torch::optim::Optimizer>(
          std::shared_ptr<torch::optim::Optimizer>(),
          &optimizer),
      /*counts_steps=*/false);
}

OptimizerRef::OptimizerRef(torch::optim::Optimizer& optimizer)
    : optimizer_(from_torch(optimizer)) {}

} // namespace lockstep
