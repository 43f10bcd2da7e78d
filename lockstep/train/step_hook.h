// SPDX-License-Identifier: BSD-3-Clause
//
// What happens around the update of a step: clipping, averages of weights,
// layers that are frozen, a program's own.
//   struct Noise : StepHook {
//     void before_update(const StepScope& scope) override {
//       for (auto& p : scope.module.parameters()) { ... p.grad() ... }
//     }
//   };
//   Trainer trainer(config, {.hooks = {std::make_shared<Noise>()}});
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "lockstep/distributed/process_group.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/state_part.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

/// Where a run stands. Ownership: borrows.
struct StepScope {
  torch::nn::Module& module;
  Optimizer& optimizer;
  const dist::ProcessGroup& group;
  /// From 1 on: what is running.
  std::int64_t epoch = 0;
  std::int64_t step = 0;
};

/// Called on every rank, which must do the same: random numbers come from the
/// place in the run, since each rank's generators are its own. What is kept
/// from step to step is in `parts`. Threads: those of the trainer, one at a
/// time.
class StepHook {
 public:
  StepHook() = default;
  virtual ~StepHook() = default;
  StepHook(const StepHook&) = delete;
  StepHook& operator=(const StepHook&) = delete;

  /// For the log: "gradients are clipped to a norm of 1". A run that goes on
  /// with other texts may have other bits, and says so.
  [[nodiscard]] virtual std::string text() const = 0;
  /// False for a hook that only looks.
  [[nodiscard]] virtual bool decides_bits() const {
    return true;
  }
  /// What checkpoints hold of it. Ownership: the parts borrow the hook.
  virtual std::vector<StatePart> parts() {
    return {};
  }
  /// Factor of the loss in the backward passes of the next step.
  [[nodiscard]] virtual double loss_scale() const {
    return 1.0;
  }
  /// Asked after `before_update` of all hooks: true, and the optimizer makes no
  /// step; `after_update` and the schedule go on as if it had, as in scripts.
  [[nodiscard]] virtual bool skips_update() const {
    return false;
  }
  /// Before the first step of an epoch, and of a part of one that goes on.
  virtual void begin_epoch(const StepScope& /*scope*/) {}
  /// The gradients are there, those of all replicas and ranks.
  virtual void before_update(const StepScope& /*scope*/) {}
  /// The optimizer has changed the weights.
  virtual void after_update(const StepScope& /*scope*/) {}
  /// All steps of the epoch are made, and its test comes; `step` is the last.
  virtual void end_steps(const StepScope& /*scope*/) {}
  /// Around the test of an epoch, which sees what the hook makes of the module;
  /// `step` is the last one that is done. The end is in the opposite order,
  /// also of a test that throws; it throws nothing itself.
  virtual void begin_test(const StepScope& /*scope*/) {}
  virtual void end_test(const StepScope& /*scope*/) {}
  virtual void end_epoch(const EpochRecord& /*record*/) {}
  /// The run is over, also one that threw: what the hook switched in the module
  /// for it is switched back. The weights stay.
  virtual void end_run() noexcept {}
  /// The numbers of the tests so far are no measure for those to come: these
  /// are of other data, or another metric.
  virtual void forget_tests() {}
  /// Why the run has nothing more to do, as a sentence; empty: it goes on.
  [[nodiscard]] virtual std::string is_done() const {
    return {};
  }
};

using StepHooks = std::vector<std::shared_ptr<StepHook>>;

} // namespace lockstep::train
#pragma GCC visibility pop
