// SPDX-License-Identifier: BSD-3-Clause
//
// Schedules that begin again: up and down between two rates, and a cosine with
// restarts.
//   CyclicLR cycle(sgd, {.base_lr = {0.001}, .max_lr = {0.1}});
//   CosineAnnealingWarmRestarts restarts(sgd, {.t_0 = 10, .t_mult = 2});
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/optim/scheduler.h"

namespace lockstep {

struct CyclicLROptions {
  /// Lowest and highest rate: one value, or one for each parameter group.
  std::vector<double> base_lr = {};
  std::vector<double> max_lr = {};
  /// Batches up, and down; none: as many down as up.
  std::int64_t step_size_up = 2000;
  std::optional<std::int64_t> step_size_down = {};
  /// "triangular", "triangular2" (half the height each cycle) or "exp_range"
  /// (times `gamma` each batch).
  std::string mode = "triangular";
  double gamma = 1.0;
  /// Factor of the height, instead of the mode's. It is given the number of the
  /// cycle, from 1 on, or with `scale_mode` "iterations" that of the batch.
  std::function<double(std::int64_t)> scale_fn = {};
  std::string scale_mode = "cycle";
  /// Move the momentum (Adam: the first beta) the other way.
  bool cycle_momentum = true;
  /// Momentum at `max_lr` and at `base_lr`; one value, or one for each group.
  std::vector<double> base_momentum = {0.8};
  std::vector<double> max_momentum = {0.9};
  std::int64_t last_epoch = -1;
};

/// Up from `base_lr` to `max_lr` and down again, on and on. Step it after every
/// batch. `scale_fn` is not saved, as in Python: give it before loading. Of a
/// callable object Python saves its attributes; such a state is refused with
/// kUnsupported.
class CyclicLR final : public Scheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  CyclicLR(OptimizerRef optimizer, const CyclicLROptions& options);

 private:
  /// What is saved.
  struct Cycle {
    std::vector<double> max_lrs = {};
    double total_size = 0;
    double step_ratio = 0;
    std::string mode = {};
    double gamma = 1.0;
    std::string scale_mode = {};
    bool cycle_momentum = true;
    /// Adam's way to keep the momentum.
    bool use_beta1 = false;
    std::vector<double> base_momentums = {};
    std::vector<double> max_momentums = {};
  };

  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  [[nodiscard]] std::vector<ckpt::Item> late_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  void set_momenta(const CyclicLROptions& options);
  [[nodiscard]] double scale(std::int64_t cycle) const;

  Cycle cycle_;
  std::function<double(std::int64_t)> scale_fn_;
};

struct CosineAnnealingWarmRestartsOptions {
  /// Epochs until the first restart (Python's `T_0`).
  std::int64_t t_0 = 0;
  /// Each period is so many times the one before (Python's `T_mult`).
  std::int64_t t_mult = 1;
  double eta_min = 0;
  std::int64_t last_epoch = -1;
};

/// Half a cosine wave down to `eta_min`, then from the top again.
class CosineAnnealingWarmRestarts final : public Scheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  CosineAnnealingWarmRestarts(
      OptimizerRef optimizer,
      const CosineAnnealingWarmRestartsOptions& options);

  using Scheduler::step;
  /// Goes to `epoch`, which may lie between two:
  /// `step(epoch + i / double(num_batches))`. As in Python, a later `step()`
  /// goes on from there. Errors: throws kInvalidArgument if it is negative.
  void step(double epoch);
  template <std::integral T>
  void step(T epoch) {
    step_to(static_cast<std::int64_t>(epoch));
  }

 private:
  void advance(Order order) override;
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;
  void step_to(const ckpt::Value& epoch);

  CosineAnnealingWarmRestartsOptions options_;
  /// Length of this period.
  std::int64_t t_i_ = 0;
  /// Epochs since the last restart: an int or a float, as Python saves it.
  ckpt::Value t_cur_;
};

} // namespace lockstep
