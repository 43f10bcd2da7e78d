// SPDX-License-Identifier: BSD-3-Clause
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"
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
    groups_ = seen_ = given_ = lockstep::param_groups(*optimizer_);
  }

  [[nodiscard]] std::optional<std::int64_t> step_calls()
      const noexcept override {
    return step_calls_;
  }

  void step() override {
    refuse_two_changes(take_changes());
    ++step_calls_;
    set_options(*optimizer_, groups_);
    mark_as_seen();
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
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      ckpt::Dict group;
      for (const NamedOption& option : groups_[i].options) {
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
    groups_ = lockstep::load_state_dict(*optimizer_, state);
    mark_as_seen();
  }
  void use_workers(Workers /*workers*/) override {}
  std::vector<ParamGroup>& param_groups() noexcept override {
    take_changes();
    return groups_;
  }
  [[nodiscard]] const std::vector<ParamGroup>& param_groups()
      const noexcept override {
    take_changes();
    return groups_;
  }

 private:
  // LibTorch's write through `p.data()`, which LibTorch's version counters do
  // not see; who holds copies of the parameters asks them, and so does a graph
  // that saved them.
  void count_changes() const {
    for (const ParamGroup& group : groups_) {
      for (const at::Tensor& param : group.params) {
        if (param.grad().defined() && !param.is_inference()) {
          param.unsafeGetTensorImpl()->bump_version();
        }
      }
    }
  }

  // LibTorch's schedulers, and who kept a pointer, write into LibTorch's
  // groups; ours write into `groups_`. What changed on one side is the other
  // side's, too. Returns LibTorch's groups.
  std::vector<ParamGroup> take_changes() const {
    std::vector<ParamGroup> theirs = lockstep::param_groups(*optimizer_);
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      for (const auto& [name, value] : theirs[i].options) {
        if (!equal(value, seen_[i].find(name)) && !is_changed_here(i, name)) {
          groups_[i].set(name, value);
          given_[i].set(name, value);
          seen_[i].set(name, value);
        }
      }
    }
    for (std::size_t i = seen_.size(); i < theirs.size(); ++i) {
      groups_.push_back(theirs[i]);
      given_.push_back(theirs[i]);
      seen_.push_back(theirs[i]);
    }
    return theirs;
  }

  void refuse_two_changes(const std::vector<ParamGroup>& theirs) const {
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      for (const auto& [name, value] : theirs[i].options) {
        if (!equal(value, seen_[i].find(name)) &&
            !equal(value, groups_[i].find(name))) {
          raise(
              {.code = ErrorCode::kInvalidArgument,
               .op = "optim.step",
               .message = format(
                   "'{}' of parameter group {} was changed twice since the "
                   "last step: to {} in LibTorch's optimizer, to {} in "
                   "param_groups()",
                   name,
                   i,
                   ckpt::to_text(value),
                   ckpt::to_text(*groups_[i].find(name))),
               .hint =
                   "change it in one of them: with LibTorch's schedulers or "
                   "with Lockstep's"});
        }
      }
    }
  }

  void mark_as_seen() {
    seen_ = lockstep::param_groups(*optimizer_);
    given_ = groups_;
  }

  [[nodiscard]] bool is_changed_here(std::size_t group, std::string_view name)
      const {
    const ckpt::Value* own = groups_[group].find(name);
    return own == nullptr || !equal(*own, given_[group].find(name));
  }

  static bool equal(const ckpt::Value& value, const ckpt::Value* other) {
    return other != nullptr && ckpt::to_text(value) == ckpt::to_text(*other);
  }

  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  mutable std::vector<ParamGroup> groups_ = {};
  /// LibTorch's and ours when they were last the same.
  mutable std::vector<ParamGroup> seen_ = {};
  mutable std::vector<ParamGroup> given_ = {};
  std::int64_t step_calls_ = 0;
};

} // namespace

std::unique_ptr<Optimizer> from_torch(
    std::unique_ptr<torch::optim::Optimizer> optimizer) {
  return std::make_unique<TorchOptimizer>(std::move(optimizer));
}

} // namespace lockstep
