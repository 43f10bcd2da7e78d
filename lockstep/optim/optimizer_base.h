// SPDX-License-Identifier: BSD-3-Clause
//
// Groups and per-parameter state, common to all optimizers. A new optimizer
// states its `OptimizerKind` and writes `step`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/optim/optimizer.h"

namespace lockstep {

namespace internal {
class PartRunner;
class Scratch;
struct Part;
struct Update;
} // namespace internal

/// What differs between optimizers besides the arithmetic.
struct OptimizerKind {
  /// Python's class: "SGD".
  std::string_view name = {};
  /// Keys of one parameter's state, in Python's order.
  std::span<const std::string_view> state_keys = {};
  /// Throws kInvalidArgument with PyTorch's text for a bad option.
  void (*check)(const ParamGroup& group) = nullptr;
  /// Adds the options that files of older PyTorch versions lack.
  void (*complete_loaded)(ParamGroup& group) = nullptr;
  /// True if `key` must exist in every loaded non-empty state.
  bool (*needs)(std::string_view key, const ParamGroup& group) = nullptr;
};

/// State of one parameter: tensors by Python's key, in the order they were
/// made. An undefined tensor is Python's None.
struct ParamState {
  /// Keeps the parameter alive.
  at::Tensor param = {};
  std::vector<std::pair<std::string_view, at::Tensor>> tensors = {};

  /// The tensor under `key`; a new, undefined one if there is none.
  at::Tensor& operator[](std::string_view key);
};

/// State of all parameters.
struct StateTable {
  /// In the order of first use, which is the order in files.
  std::vector<ParamState> entries = {};
  std::unordered_map<const c10::TensorImpl*, std::size_t> index = {};
  /// Loaded state of ids that no group names; saved again as it was.
  std::vector<ckpt::Item> foreign = {};

  /// State of `param`, made empty on first use. Valid until the next call.
  ParamState& of(const at::Tensor& param);
};

/// Keeps groups and state; see `Optimizer` for the functions.
class OptimizerBase : public Optimizer {
 public:
  ~OptimizerBase() override;
  OptimizerBase(const OptimizerBase&) = delete;
  OptimizerBase& operator=(const OptimizerBase&) = delete;

  void zero_grad(bool set_to_none = true) override;
  [[nodiscard]] ckpt::Value state_dict() const override;
  void load_state_dict(const ckpt::Value& state) override;
  void use_workers(Workers workers) override;
  [[nodiscard]] std::optional<std::int64_t> step_calls()
      const noexcept override {
    return step_calls_;
  }
  std::vector<ParamGroup>& param_groups() noexcept override {
    return groups_;
  }
  [[nodiscard]] const std::vector<ParamGroup>& param_groups()
      const noexcept override {
    return groups_;
  }

  /// Adds a group, for example layers that were frozen until now.
  /// Errors: throws kInvalidArgument (unknown or bad option, a parameter that
  /// another group has, a tensor that is no leaf); nothing is added then.
  void add_param_group(ParamGroup group);

 protected:
  /// `defaults` in Python's order. `kind` must outlive the optimizer.
  OptimizerBase(
      const OptimizerKind& kind,
      Params params,
      std::vector<NamedOption> defaults);

  /// Spreads the parameters of `group` that have a gradient over the workers
  /// and calls `step` for each part. With `keeps_state` their state entries are
  /// made first, in the order of the group.
  void step_in_parts(
      const ParamGroup& group,
      bool keeps_state,
      const std::function<void(internal::Part&)>& step);

 private:
  const OptimizerKind& kind_;
  std::vector<NamedOption> defaults_;
  std::vector<ParamGroup> groups_;
  StateTable state_;
  /// Units: groups that were stepped.
  std::int64_t step_calls_ = 0;
  std::unique_ptr<internal::PartRunner> runner_;
};

} // namespace lockstep
