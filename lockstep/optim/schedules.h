// SPDX-License-Identifier: BSD-3-Clause
//
// The 1cycle schedule: up to `max_lr`, then down to almost nothing, with the
// momentum going the other way. Step it after every batch.
//   OneCycleLR scheduler(optimizer, {.max_lr = {0.1}, .total_steps = 1000});
//
// Schedules that begin again: up and down between two rates, and a cosine with
// restarts.
//   CyclicLR cycle(sgd, {.base_lr = {0.001}, .max_lr = {0.1}});
//   CosineAnnealingWarmRestarts restarts(sgd, {.t_0 = 10, .t_mult = 2});
//
// The schedule that waits until a metric stops getting better.
//   ReduceLROnPlateau scheduler(sgd, {.patience = 5});
//   for (...) { train_one_epoch(); scheduler.step(validation_loss); }
//
// Schedules made of others: one after the other, or all at once.
//   auto warmup = std::make_shared<LinearLR>(sgd);
//   auto decay = std::make_shared<ExponentialLR>(
//       sgd, ExponentialLROptions{.gamma = 0.9});
//   SequentialLR scheduler(
//       sgd, {.schedulers = {warmup, decay}, .milestones = {5}});
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/scheduler.h"

#pragma GCC visibility push(default)
namespace lockstep {

struct OneCycleLROptions {
  /// One value, or one for each parameter group.
  std::vector<double> max_lr = {};
  /// Batches of the whole run; none: `epochs * steps_per_epoch`.
  std::optional<std::int64_t> total_steps = {};
  std::optional<std::int64_t> epochs = {};
  std::optional<std::int64_t> steps_per_epoch = {};
  /// Share of the run that goes up.
  double pct_start = 0.3;
  /// "cos" or "linear".
  std::string anneal_strategy = "cos";
  /// Move the momentum (Adam: the first beta), too.
  bool cycle_momentum = true;
  /// Momentum at `max_lr`; one value, or one for each group.
  std::vector<double> base_momentum = {0.85};
  /// Momentum at both ends; one value, or one for each group.
  std::vector<double> max_momentum = {0.95};
  /// First lr = max_lr / div_factor.
  double div_factor = 25;
  /// Last lr = first lr / final_div_factor.
  double final_div_factor = 1e4;
  /// Down to the first lr as fast as up, then a third phase to the last.
  bool three_phase = false;
  std::int64_t last_epoch = -1;
};

/// Python's `OneCycleLR`. Groups gain `initial_lr`, `max_lr`, `min_lr`,
/// `max_momentum` and `base_momentum`.
class OneCycleLR final : public Scheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  OneCycleLR(OptimizerRef optimizer, const OneCycleLROptions& options);

 private:
  /// A stretch of the run; names are options of the parameter groups.
  struct Phase {
    double end_step = 0;
    std::string start_lr = {};
    std::string end_lr = {};
    std::string start_momentum = {};
    std::string end_momentum = {};
  };

  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;

  static std::vector<Phase> two_phases(double end_of_up, double total);
  void make_phases(const OneCycleLROptions& options);
  [[nodiscard]] std::vector<Phase> saved_phases(const ckpt::Value& state) const;
  void set_bounds(const OneCycleLROptions& options);
  [[nodiscard]] double anneal(double start, double end, double share) const;

  std::int64_t total_steps_ = 0;
  std::vector<Phase> phases_;
  std::string anneal_strategy_;
  bool cycle_momentum_ = true;
  /// Adam's way to keep the momentum.
  bool use_beta1_ = false;
};

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

struct ReduceLROnPlateauOptions {
  /// "min": less is better; "max": more is.
  std::string mode = "min";
  double factor = 0.1;
  /// Epochs without getting better that are let pass.
  std::int64_t patience = 10;
  /// How much better counts: as a share of the best ("rel"), or itself ("abs").
  double threshold = 1e-4;
  std::string threshold_mode = "rel";
  /// Epochs after a reduction in which nothing is counted.
  std::int64_t cooldown = 0;
  /// One value for all groups, later ones too, or one for each group.
  std::vector<double> min_lr = {0};
  /// A smaller change of lr is not made.
  double eps = 1e-8;
};

/// lr *= factor after `patience` epochs in which the metric got no better. It
/// keeps no `initial_lr` in the groups, as in Python, and its `last_epoch()`
/// begins with 0.
class ReduceLROnPlateau final : public Scheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  explicit ReduceLROnPlateau(
      OptimizerRef optimizer,
      const ReduceLROnPlateauOptions& options = {});

  /// One epoch, with its metric. A NaN is no better than anything.
  void step(double metrics);
  /// Needs the metric. As a `Scheduler`, `step()` and `fast_forward()` throw
  /// kInvalidArgument.
  void step() = delete;

  [[nodiscard]] ckpt::Value state_dict() const override;
  void load_state_dict(const ckpt::Value& state) override;

 private:
  void advance(Order order) override;
  void reduce();
  [[nodiscard]] bool is_better(double metric) const;

  ReduceLROnPlateauOptions options_;
  /// None: each group has its own.
  std::optional<double> default_min_lr_;
  std::vector<double> min_lrs_;
  double best_ = 0;
  std::int64_t cooldown_counter_ = 0;
  std::int64_t num_bad_epochs_ = 0;
};

struct SWALROptions {
  /// One value for all groups, or one for each, which keeps it as `swa_lr`.
  std::vector<double> swa_lr = {};
  std::int64_t anneal_epochs = 10;
  /// "cos" or "linear".
  std::string anneal_strategy = "cos";
  std::int64_t last_epoch = -1;
};

/// From the rate of now to `swa_lr`, for the average of weights late in a
/// training: Python's torch.optim.swa_utils.SWALR.
class SWALR final : public Scheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  SWALR(OptimizerRef optimizer, SWALROptions options);

 private:
  std::vector<double> get_lr() override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;
  /// How much of the way is behind after so many epochs.
  [[nodiscard]] double share_after(std::int64_t epochs) const;

  SWALROptions options_;
};

/// What the two below share. A ReduceLROnPlateau cannot be in them, since a
/// step of theirs has no metric.
///
/// Ownership: shares the schedulers; step, save and load them through it alone.
class ComposedScheduler : public Scheduler {
 public:
  [[nodiscard]] ckpt::Value state_dict() const override;
  /// Errors: throws kMismatch, and nothing is changed, also for another number
  /// of schedulers and for what those in it throw.
  void load_state_dict(const ckpt::Value& state) override;

 protected:
  using Schedulers = std::vector<std::shared_ptr<Scheduler>>;

  /// `kind` is Python's class.
  ComposedScheduler(
      std::string_view kind,
      OptimizerRef optimizer,
      Schedulers schedulers);

  [[nodiscard]] const Schedulers& schedulers() const noexcept {
    return schedulers_;
  }
  void undo() override;

  /// For those in it.
  static void begin_again(Scheduler& scheduler) {
    scheduler.initial_step();
  }
  static void begin_at_milestone(Scheduler& scheduler) {
    scheduler.restart();
  }
  static void go_on(Scheduler& scheduler, Order order) {
    scheduler.advance(order);
  }

 private:
  void initial_step() override;
  void restart() override;

  std::string_view kind_;
  Schedulers schedulers_;
  /// Python's object gains attributes if it is the first one in another.
  bool has_initial_step_ = false;
};

struct SequentialLROptions {
  std::vector<std::shared_ptr<Scheduler>> schedulers = {};
  /// Epochs at which the next one begins: one less than there are schedulers.
  std::vector<std::int64_t> milestones = {};
  std::int64_t last_epoch = -1;
};

/// One scheduler after the other. All are made before, and this one takes back
/// what they did to the learning rates; each begins with its epoch 0 at its
/// milestone.
class SequentialLR final : public ComposedScheduler {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text; kUnsupported for a
  /// SequentialLR or ChainedScheduler that would begin at a milestone, where
  /// Python throws NotImplementedError.
  SequentialLR(OptimizerRef optimizer, SequentialLROptions options);

 private:
  void advance(Order order) override;
  [[nodiscard]] std::vector<ckpt::Item> own_state() const override;
  void load_own_state(const ckpt::Value& state) override;
  void check_milestones() const;
  [[nodiscard]] std::size_t index_at(std::int64_t epoch) const;

  std::vector<std::int64_t> milestones_;
};

/// All schedulers at each step, in their order. `last_epoch()` is the first
/// one's.
class ChainedScheduler final : public ComposedScheduler {
 public:
  /// Without `optimizer` that of the first scheduler. Errors: throws
  /// kInvalidArgument with PyTorch's text.
  explicit ChainedScheduler(
      const std::vector<std::shared_ptr<Scheduler>>& schedulers);
  ChainedScheduler(
      std::vector<std::shared_ptr<Scheduler>> schedulers,
      OptimizerRef optimizer);

 private:
  void advance(Order order) override;
  void load_own_state(const ckpt::Value& state) override;
};

} // namespace lockstep
#pragma GCC visibility pop
