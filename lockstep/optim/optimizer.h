// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizers with PyTorch's numbers and PyTorch's state: what one side saves,
// the other side loads and continues with the same bits.
//   SGD optimizer(*net, {.lr = 0.1, .momentum = 0.9});
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//   save(optimizer.state_dict(), "optimizer.pth");
//
// Parameters to optimise, in groups that have options of their own. Options
// keep PyTorch's names and order, so a group is saved as Python saves it.
//   Params params = {{.params = backbone, .options = {{"lr", 0.001}}},
//                    {.params = head}};
//   for (ParamGroup& group : optimizer.param_groups()) {
//     group.set_lr(group.lr() / 2);
//   }
//
// Groups and per-parameter state, common to all optimizers. A new optimizer
// states its `OptimizerKind` and writes `step`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Threads that one part of a program owns and lends to another, so that the
/// machine is not shared by two pools:
///   optimizer.use_workers(model->group().workers());
/// Without `run` there are none and the caller works alone.
struct Workers {
  using Task = std::function<void(std::size_t)>;
  /// How many tasks can run at the same time.
  std::size_t count = 1;
  /// Runs task(0) .. task(tasks - 1), `tasks` <= `count`, at the same time,
  /// some of them perhaps in the calling thread, and waits for all. Errors:
  /// rethrows what the lowest failing task threw.
  std::function<void(std::size_t tasks, const Task& task)> run = {};
};

/// Name and value of one option: {"lr", 0.1}.
using NamedOption = std::pair<std::string, ckpt::Value>;

/// One group of parameters. What `options` leaves out comes from the options
/// of the optimizer; schedulers add `initial_lr` and more.
struct ParamGroup {
  /// Ownership: shared with the module.
  std::vector<at::Tensor> params = {};
  /// In Python's order, without "params". Names of parameters, if any, are the
  /// list "param_names".
  std::vector<NamedOption> options = {};

  /// The option's value; null if there is none.
  [[nodiscard]] const ckpt::Value* find(std::string_view name) const noexcept;
  /// True if the option is there, with a value of the same text.
  [[nodiscard]] bool has(std::string_view name, const ckpt::Value& value) const;
  /// The option as a number; a tensor of one element is one. Errors: throws
  /// kInvalidArgument if it is none.
  [[nodiscard]] double number(std::string_view name) const;
  /// The option as a bool; None and a missing option are false. Errors: throws
  /// kInvalidArgument for other types.
  [[nodiscard]] bool flag(std::string_view name) const;
  /// Adam's pair of decay rates. Errors: throws kInvalidArgument.
  [[nodiscard]] std::pair<double, double> betas() const;
  /// Replaces the option, or appends it.
  void set(std::string_view name, ckpt::Value value);

  [[nodiscard]] double lr() const {
    return number("lr");
  }
  /// A tensor gets this value, so that whoever holds it sees it, as in Python.
  void set_lr(double lr);
};

/// What an optimizer works on: a module, tensors, or groups. Shared parameters
/// of a module count once, as in Python.
class Params {
 public:
  // Implicit on purpose: `SGD optimizer(*net, {.lr = 0.1})`.
  // NOLINTBEGIN(google-explicit-constructor)
  Params(const torch::nn::Module& module);
  Params(std::vector<at::Tensor> tensors);
  Params(std::vector<ParamGroup> groups);
  Params(ParamGroup group);
  // NOLINTEND(google-explicit-constructor)
  Params(std::initializer_list<at::Tensor> tensors);
  Params(std::initializer_list<ParamGroup> groups);

  [[nodiscard]] const std::vector<ParamGroup>& groups() const& noexcept {
    return groups_;
  }
  [[nodiscard]] std::vector<ParamGroup> groups() && noexcept {
    return std::move(groups_);
  }

 private:
  std::vector<ParamGroup> groups_;
};

/// All parameters with their names, as Python's `model.named_parameters()`:
/// the optimizer's state then carries `param_names`.
ParamGroup named_parameters(const torch::nn::Module& module);

/// The parameters that require gradients, as Python's
/// `filter(lambda p: p.requires_grad, model.parameters())`.
std::vector<at::Tensor> trainable_parameters(const torch::nn::Module& module);

} // namespace lockstep

namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace lockstep {

/// What every optimizer offers. Wrappers derive from this; optimizers derive
/// from `OptimizerBase`, which keeps groups and state.
///
/// Threads: one thread at a time; it need not be the thread that made it.
class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Changes the parameters by their gradients. Parameters without a gradient
  /// are left alone. Errors: throws kUnsupported for sparse gradients.
  virtual void step() = 0;

  /// True if LibTorch's version counters see each write of `step`. Who holds
  /// copies of the parameters sends anew only those that have changed, then.
  [[nodiscard]] virtual bool counts_writes() const noexcept {
    return false;
  }

  /// How often `step` was called, or a number that grows with it; nothing if
  /// the optimizer does not count. Schedulers ask it.
  [[nodiscard]] virtual std::optional<std::int64_t> step_calls()
      const noexcept {
    return std::nullopt;
  }

  /// Drops all gradients, or fills them with zeros.
  virtual void zero_grad(bool set_to_none = true) = 0;

  /// `{'state': {...}, 'param_groups': [...]}` as Python writes it.
  /// Ownership: tensors alias the live state; save or copy before `step`.
  [[nodiscard]] virtual ckpt::Value state_dict() const = 0;

  /// Takes over saved state and options: groups by position, parameters by
  /// their names ("param_names") where both sides have the same ones, else by
  /// position. Make schedulers before.
  /// Errors: throws kMismatch with PyTorch's text (number of groups, sizes of
  /// groups), for a name in another group, for shapes and for another
  /// optimizer's state; the optimizer is unchanged then.
  virtual void load_state_dict(const ckpt::Value& state) = 0;

  /// Lends threads to `step`: each updates whole parameters, so the numbers do
  /// not depend on it. For parameters on the CPU only; others are updated by
  /// the caller.
  virtual void use_workers(Workers workers) = 0;

  /// Options in them may be changed. A wrapper of another optimizer gives it
  /// the changes at its next `step`, or by `apply_options`.
  virtual std::vector<ParamGroup>& param_groups() noexcept = 0;
  [[nodiscard]] virtual const std::vector<ParamGroup>& param_groups()
      const noexcept = 0;
  /// Gives the optimizer within, if there is one, what was changed in
  /// `param_groups()`. Schedulers call it.
  virtual void apply_options() {}
  /// Equal for all wrappers of one optimizer: where its groups lie.
  [[nodiscard]] virtual const void* identity() const noexcept {
    return &param_groups();
  }

 private:
  friend class Scheduler;
  /// `step_calls()` when the first schedule began.
  std::optional<std::int64_t> calls_before_schedules_ = {};
};

/// An optimizer as an argument: what takes one of these takes an `Optimizer&`
/// or one of LibTorch's (`from_torch`), which must outlive it, or shares a
/// `std::shared_ptr<Optimizer>`.
class OptimizerRef {
 public:
  // Implicit on purpose: `StepLR scheduler(sgd, {.step_size = 30})`.
  // NOLINTBEGIN(google-explicit-constructor)
  OptimizerRef(Optimizer& optimizer)
      : optimizer_(std::shared_ptr<Optimizer>(), &optimizer) {}
  /// Errors: throws kUnsupported for a class that `from_torch` does not know.
  OptimizerRef(torch::optim::Optimizer& optimizer);
  /// Errors: throws kInvalidArgument for null.
  template <std::derived_from<Optimizer> T>
  OptimizerRef(std::shared_ptr<T> optimizer)
      : optimizer_(not_null(std::move(optimizer))) {}
  // NOLINTEND(google-explicit-constructor)

  Optimizer& operator*() const noexcept {
    return *optimizer_;
  }
  Optimizer* operator->() const noexcept {
    return optimizer_.get();
  }
  /// True if both are one optimizer.
  friend bool operator==(const OptimizerRef& a, const OptimizerRef& b) {
    return a->identity() == b->identity();
  }

 private:
  static std::shared_ptr<Optimizer> not_null(
      std::shared_ptr<Optimizer> optimizer);

  std::shared_ptr<Optimizer> optimizer_;
};

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
  [[nodiscard]] bool counts_writes() const noexcept override {
    return true;
  }
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
  /// made first, in the order of the group. `step` records no gradients.
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
#pragma GCC visibility pop
