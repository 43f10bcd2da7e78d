// SPDX-License-Identifier: BSD-3-Clause
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>

#include "lockstep/dist/internal/two_sided_groups.h"
#include "lockstep/dist/zero_redundancy_optimizer.h"
#include "lockstep/optim/torch_groups.h"
#include "lockstep/optim/torch_optim_state.h"

namespace lockstep {
namespace {

/// What `torch_optim_state.h` tells of LibTorch's optimizer, behind our
/// interface.
class TorchOptimizer final : public Optimizer {
 public:
  explicit TorchOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer)
      : optimizer_(std::move(optimizer)) {
    both_.groups = lockstep::param_groups(*optimizer_);
    both_.mark_as_seen(both_.groups);
  }

  [[nodiscard]] std::optional<std::int64_t> step_calls()
      const noexcept override {
    return step_calls_;
  }

  void step() override {
    both_.refuse_two_changes(take_changes());
    ++step_calls_;
    set_options(*optimizer_, both_.groups);
    both_.mark_as_seen(lockstep::param_groups(*optimizer_));
    optimizer_->step();
    count_changes();
  }
  void zero_grad(bool set_to_none) override {
    optimizer_->zero_grad(set_to_none);
  }
  /// The groups are Python's: with what schedulers keep in them.
  [[nodiscard]] ckpt::Value state_dict() const override {
    take_changes();
    ckpt::Value state = lockstep::state_dict(*optimizer_);
    ckpt::List groups;
    for (std::size_t i = 0; i < both_.groups.size(); ++i) {
      ckpt::Dict group;
      for (const NamedOption& option : both_.groups[i].options) {
        group.items.emplace_back(option.first, option.second);
      }
      group.items.emplace_back(
          "params",
          *(*state.find("param_groups")->elements())[i].find("params"));
      groups.items.emplace_back(std::move(group));
    }
    state.set("param_groups", std::move(groups));
    return state;
  }
  void load_state_dict(const ckpt::Value& state) override {
    both_.groups = lockstep::load_state_dict(*optimizer_, state);
    both_.mark_as_seen(lockstep::param_groups(*optimizer_));
  }
  void use_workers(Workers /*workers*/) override {}
  std::vector<ParamGroup>& param_groups() noexcept override {
    take_changes();
    return both_.groups;
  }
  [[nodiscard]] const std::vector<ParamGroup>& param_groups()
      const noexcept override {
    take_changes();
    return both_.groups;
  }

 private:
  // LibTorch's write through `p.data()`, which LibTorch's version counters do
  // not see; who holds copies of the parameters asks them, and so does a graph
  // that saved them.
  void count_changes() const {
    for (const ParamGroup& group : both_.groups) {
      for (const at::Tensor& param : group.params) {
        if (param.grad().defined() && !param.is_inference()) {
          param.unsafeGetTensorImpl()->bump_version();
        }
      }
    }
  }

  // Returns LibTorch's groups.
  std::vector<ParamGroup> take_changes() const {
    std::vector<ParamGroup> theirs = lockstep::param_groups(*optimizer_);
    both_.take(theirs);
    return theirs;
  }

  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  mutable dist::internal::TwoSidedGroups both_{"LibTorch's optimizer"};
  std::int64_t step_calls_ = 0;
};

} // namespace

std::unique_ptr<Optimizer> from_torch(
    std::unique_ptr<torch::optim::Optimizer> optimizer) {
  return std::make_unique<TorchOptimizer>(std::move(optimizer));
}

} // namespace lockstep
