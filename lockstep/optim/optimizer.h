// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizers with PyTorch's numbers and PyTorch's state: what one side saves,
// the other side loads and continues with the same bits.
//   SGD optimizer(*net, {.lr = 0.1, .momentum = 0.9});
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//   save(optimizer.state_dict(), "optimizer.pth");
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/optim/param_group.h"

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
  /// Equal for all wrappers of one optimizer of LibTorch's.
  [[nodiscard]] virtual const void* identity() const noexcept {
    return this;
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

} // namespace lockstep
