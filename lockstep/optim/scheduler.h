// SPDX-License-Identifier: BSD-3-Clause
//
// Learning-rate schedules with PyTorch's numbers, bit for bit, and its state.
//   StepLR scheduler(optimizer, {.step_size = 30});
//   for (...) { train_one_epoch(); scheduler.step(); }
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/optim/optimizer.h"

namespace lockstep {

/// Sets `lr` of each parameter group, step by step. Groups keep the first
/// value as `initial_lr`.
///
/// Ownership: the optimizer must outlive the scheduler.
class Scheduler {
 public:
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Goes to the next epoch (or batch: OneCycleLR). Call it after the
  /// optimizer's step: the first call warns in PyTorch's words if the optimizer
  /// has made none since its first scheduler began.
  void step();
  /// Goes on as `steps` calls of `step` for a run whose optimizer has made its
  /// steps before: without the warning.
  void fast_forward(std::int64_t steps);
  /// What the last step set, one per group.
  [[nodiscard]] const std::vector<double>& get_last_lr() const noexcept {
    return last_lr_;
  }
  [[nodiscard]] std::int64_t last_epoch() const noexcept {
    return last_epoch_;
  }

  /// The dict Python's scheduler gives, keys in Python's order.
  [[nodiscard]] ckpt::Value state_dict() const;
  /// Takes over a saved state, also of older PyTorch versions, which saved
  /// less; the groups' `lr` comes with the optimizer's. Errors: throws
  /// kMismatch for another scheduler's state or another number of groups; the
  /// scheduler is unchanged then.
  void load_state_dict(const ckpt::Value& state);

 protected:
  explicit Scheduler(Optimizer& optimizer) : optimizer_(optimizer) {}

  /// Last call of every constructor: sets the first learning rates.
  /// Errors: throws kInvalidArgument if `last_epoch` >= 0 and a group has no
  /// `initial_lr`.
  void begin(std::int64_t last_epoch);

  /// Learning rates of epoch `last_epoch()`, one per group.
  virtual std::vector<double> get_lr() = 0;
  /// State that this class adds, in Python's order.
  [[nodiscard]] virtual std::vector<ckpt::Item> own_state() const = 0;
  /// Reads what `own_state` wrote. Changes nothing if it throws.
  virtual void load_own_state(const ckpt::Value& state) = 0;

  [[nodiscard]] std::vector<ParamGroup>& groups() const noexcept {
    return optimizer_.param_groups();
  }
  /// The groups' current learning rates, each times `factor`.
  [[nodiscard]] std::vector<double> scaled_lrs(double factor) const;
  /// The first rates of the groups. Errors: throws kInvalidArgument if a group
  /// was added since.
  [[nodiscard]] const std::vector<double>& base_lrs() const;
  /// True within the constructor's step.
  [[nodiscard]] bool is_initial() const noexcept {
    return is_initial_;
  }
  [[nodiscard]] std::int64_t step_count() const noexcept {
    return step_count_;
  }

 private:
  void advance();
  void warn_of_order() const;

  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  std::vector<double> last_lr_;
  std::int64_t last_epoch_ = -1;
  std::int64_t step_count_ = 0;
  bool is_initial_ = false;
};

struct StepLROptions {
  /// Epochs between two decays.
  std::int64_t step_size = 30;
  double gamma = 0.1;
  /// -1 to start; the last epoch done to continue without a saved state.
  std::int64_t last_epoch = -1;
};

/// lr *= gamma every `step_size` epochs.
class StepLR final : public Scheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options);

 private:
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  StepLROptions options_;
};

struct MultiStepLROptions {
  /// Epochs after which lr decays; one named twice counts twice.
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;
  std::int64_t last_epoch = -1;
};

/// lr *= gamma at each milestone.
class MultiStepLR final : public Scheduler {
 public:
  MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options);

 private:
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  /// Epoch and how often it was named, in the order of first mention: Python's
  /// Counter.
  std::vector<std::pair<std::int64_t, std::int64_t>> milestones_;
  double gamma_ = 0.1;
};

struct ConstantLROptions {
  /// 1 keeps the learning rate.
  double factor = 1.0 / 3;
  /// Epoch at which lr gets its own value back.
  std::int64_t total_iters = 5;
  std::int64_t last_epoch = -1;
};

/// lr times `factor` for the first `total_iters` epochs.
class ConstantLR final : public Scheduler {
 public:
  explicit ConstantLR(
      Optimizer& optimizer,
      const ConstantLROptions& options = {});

 private:
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  ConstantLROptions options_;
};

struct CosineAnnealingLROptions {
  /// Epochs from the first to the lowest learning rate (Python's `T_max`).
  std::int64_t t_max = 0;
  double eta_min = 0;
  std::int64_t last_epoch = -1;
};

/// Half a cosine wave down to `eta_min`, then up again.
class CosineAnnealingLR final : public Scheduler {
 public:
  CosineAnnealingLR(
      Optimizer& optimizer,
      const CosineAnnealingLROptions& options);

 private:
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  CosineAnnealingLROptions options_;
};

} // namespace lockstep
