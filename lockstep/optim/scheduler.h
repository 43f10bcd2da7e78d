// SPDX-License-Identifier: BSD-3-Clause
//
// Learning-rate schedules with PyTorch's numbers, bit for bit, and its state.
//   StepLR scheduler(optimizer, {.step_size = 30});
//   for (...) { train_one_epoch(); scheduler.step(); }
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lockstep/optim/optimizer.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// Sets `lr` of each parameter group, step by step. Groups keep the first
/// value as `initial_lr`.
///
/// Ownership: as `OptimizerRef` says.
class Scheduler {
 public:
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Goes to the next epoch (or batch: OneCycleLR, CyclicLR). Call it after the
  /// optimizer's step: the first call warns in PyTorch's words if the optimizer
  /// has made none since its first scheduler began.
  /// Errors: ReduceLROnPlateau, which needs a metric, throws kInvalidArgument.
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
  /// Whose rates these are.
  [[nodiscard]] const OptimizerRef& optimizer() const noexcept {
    return optimizer_;
  }

  /// The dict Python's scheduler gives, keys in Python's order.
  [[nodiscard]] virtual ckpt::Value state_dict() const;
  /// Takes over a saved state, also of older PyTorch versions, which saved
  /// less; the groups' `lr` comes with the optimizer's. Errors: throws
  /// kMismatch for another scheduler's state or another number of groups; the
  /// scheduler is unchanged then.
  virtual void load_state_dict(const ckpt::Value& state);

 protected:
  /// Whether a step before the optimizer's warns.
  enum class Order { kChecked, kGiven };

  explicit Scheduler(OptimizerRef optimizer)
      : optimizer_(std::move(optimizer)) {}

  /// Last call of every constructor: sets the first learning rates.
  /// Errors: throws kInvalidArgument if `last_epoch` >= 0 and a group has no
  /// `initial_lr`.
  void begin(std::int64_t last_epoch);

  /// One step.
  virtual void advance(Order order);
  /// Learning rates of epoch `last_epoch()`, one per group; those of now, if
  /// the class steps in a way of its own.
  virtual std::vector<double> get_lr() {
    return scaled_lrs(1.0);
  }
  /// The same in closed form, where Python has one: SequentialLR begins with
  /// it.
  virtual std::vector<double> closed_form_lr() {
    return get_lr();
  }
  /// State that this class adds before and behind the common one, in Python's
  /// order.
  [[nodiscard]] virtual std::vector<ckpt::Item> own_state() const {
    return {};
  }
  [[nodiscard]] virtual std::vector<ckpt::Item> late_state() const {
    return {};
  }
  /// Reads what these two wrote. Changes nothing if it throws.
  virtual void load_own_state(const ckpt::Value& /*state*/) {}

  [[nodiscard]] std::vector<ParamGroup>& groups() const noexcept {
    return optimizer_->param_groups();
  }
  /// The groups' current learning rates, each times `factor`.
  [[nodiscard]] std::vector<double> scaled_lrs(double factor) const;
  /// The first rates of the groups. Errors: throws kInvalidArgument if a group
  /// was added since.
  [[nodiscard]] const std::vector<double>& base_lrs() const;
  void set_base_lrs(std::vector<double> base_lrs) {
    base_lrs_ = std::move(base_lrs);
  }
  /// Gives the groups these rates, which are those of `last_epoch`.
  void go_to(std::int64_t last_epoch, const std::vector<double>& rates);
  /// Where the scheduler stands; the groups keep their rates.
  void set_position(std::int64_t last_epoch, std::vector<double> last_lr) {
    last_epoch_ = last_epoch;
    last_lr_ = std::move(last_lr);
  }
  /// True within the constructor's step.
  [[nodiscard]] bool is_initial() const noexcept {
    return is_initial_;
  }
  [[nodiscard]] std::int64_t step_count() const noexcept {
    return step_count_;
  }

 private:
  friend class ComposedScheduler;

  /// What SequentialLR does with the schedulers in it: the constructor's step
  /// once more, back by one, to epoch 0.
  virtual void initial_step();
  virtual void undo() {
    --last_epoch_;
  }
  virtual void restart();
  void warn_of_order() const;

  OptimizerRef optimizer_;
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
  StepLR(OptimizerRef optimizer, const StepLROptions& options);

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
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
  MultiStepLR(OptimizerRef optimizer, const MultiStepLROptions& options);

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
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
      OptimizerRef optimizer,
      const ConstantLROptions& options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1.0;
  /// Epochs from the first to the last factor.
  std::int64_t total_iters = 5;
  std::int64_t last_epoch = -1;
};

/// lr times a factor that goes from `start_factor` to `end_factor` in a line.
class LinearLR final : public Scheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text for a factor.
  explicit LinearLR(
      OptimizerRef optimizer,
      const LinearLROptions& options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  LinearLROptions options_;
};

struct ExponentialLROptions {
  double gamma = 0.1;
  std::int64_t last_epoch = -1;
};

/// lr *= gamma every epoch. Python has no default for `gamma`.
class ExponentialLR final : public Scheduler {
 public:
  ExponentialLR(OptimizerRef optimizer, const ExponentialLROptions& options);

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  double gamma_ = 0.1;
};

struct PolynomialLROptions {
  /// Epochs until lr is 0.
  std::int64_t total_iters = 5;
  double power = 1.0;
  std::int64_t last_epoch = -1;
};

/// lr times (1 - epoch / total_iters) ** power.
class PolynomialLR final : public Scheduler {
 public:
  explicit PolynomialLR(
      OptimizerRef optimizer,
      const PolynomialLROptions& options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  PolynomialLROptions options_;
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
      OptimizerRef optimizer,
      const CosineAnnealingLROptions& options);

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  CosineAnnealingLROptions options_;
};

/// A factor by the epoch.
using LrLambda = std::function<double(std::int64_t epoch)>;

struct LambdaLROptions {
  /// One function, or one for each parameter group.
  std::vector<LrLambda> lr_lambda = {};
  std::int64_t last_epoch = -1;
};

/// The first lr times what the function says. Functions are not saved, as in
/// Python: give the same ones before loading. Of a callable object Python saves
/// its attributes; such a state is refused with kUnsupported.
class LambdaLR final : public Scheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text for another number of
  /// functions than of groups, and for an empty one.
  LambdaLR(OptimizerRef optimizer, LambdaLROptions options);

 private:
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> late_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  std::vector<LrLambda> lambdas_;
};

/// lr *= what the function says, every epoch; else as `LambdaLR`.
class MultiplicativeLR final : public Scheduler {
 public:
  MultiplicativeLR(OptimizerRef optimizer, LambdaLROptions options);

 private:
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> late_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  std::vector<LrLambda> lambdas_;
};

} // namespace lockstep
#pragma GCC visibility pop
