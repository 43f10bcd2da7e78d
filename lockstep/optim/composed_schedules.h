// SPDX-License-Identifier: BSD-3-Clause
//
// Schedules made of others: one after the other, or all at once.
//   auto warmup = std::make_shared<LinearLR>(sgd);
//   auto decay = std::make_shared<ExponentialLR>(
//       sgd, ExponentialLROptions{.gamma = 0.9});
//   SequentialLR scheduler(
//       sgd, {.schedulers = {warmup, decay}, .milestones = {5}});
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lockstep/optim/scheduler.h"

namespace lockstep {

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
  static const OptimizerRef& optimizer_of(const Scheduler& scheduler) {
    return scheduler.optimizer();
  }
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
