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

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/optim/param_group.h"

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

  virtual std::vector<ParamGroup>& param_groups() noexcept = 0;
  [[nodiscard]] virtual const std::vector<ParamGroup>& param_groups()
      const noexcept = 0;

 private:
  friend class Scheduler;
  /// `step_calls()` when the first schedule began.
  std::optional<std::int64_t> calls_before_schedules_ = {};
};

} // namespace lockstep
