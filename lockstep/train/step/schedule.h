// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizer and learning rate as the settings name them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/nn/module.h>

#include "lockstep/metrics/metric.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// The optimizer `config.opt` over `params`: all parameters of a module, or
/// groups of them.
/// Errors: throws kInvalidArgument for options out of range.
std::unique_ptr<Optimizer> build_optimizer(
    const TrainConfig& config,
    Params params);

/// Where checkpoints hold the state of a warm-up of steps.
inline constexpr std::string_view kWarmupKey = "warmup";
/// And of what follows `--swa-lr`.
inline constexpr std::string_view kSwaKey = "swa_scheduler";

/// A scheduler and the moment it steps: after each step or after each epoch.
/// Ownership: the optimizer must outlive it.
class Schedule {
 public:
  /// A scheduler of `optimizer`.
  Schedule(
      std::shared_ptr<Scheduler> scheduler,
      Optimizer& optimizer,
      bool is_per_step);
  /// The one that `config` names: onecyclelr steps after each step, all others
  /// after each epoch, as PyTorch's scripts do. With a warm-up it is
  /// torchvision's SequentialLR of a LinearLR from a hundredth and the
  /// schedule; a warm-up of steps is such a LinearLR beside the schedule, which
  /// steps after each step: both scale the rates that are there. From epoch
  /// `swa_start` on an SWALR to `swa_lr` steps in its place. `better`: of
  /// what chooses the best epoch, for reducelronplateau. Errors: throws
  /// kInvalidArgument for options out of range, and (E_FLAGS) for a warm-up of
  /// a schedule that has none.
  Schedule(
      const TrainConfig& config,
      Optimizer& optimizer,
      std::int64_t steps_per_epoch,
      Better better);

  void after_step();
  /// `epoch`: from 1 on. `chosen_by`: the number that chooses the best epoch;
  /// none: not measured.
  void after_epoch(std::int64_t epoch, std::optional<double> chosen_by);
  /// Errors: throws kMismatch (E_OTHER_SETTING) for a plateau that waits for
  /// higher numbers where lower ones are better, or the other way round.
  void check_mode(const BestBy& best_by) const;
  /// A plateau waits anew: the numbers to come are of other data, or of another
  /// metric.
  void forget_tests();
  /// Goes to where it stands after `epochs` and `steps`, for a checkpoint that
  /// did not save it. The rates that the optimizer loaded stay, unless they are
  /// those of the step before: many scripts set a rate when its epoch begins.
  /// Errors: throws kMismatch (E_SCHEDULE_END), and nothing changes, if it is
  /// planned for fewer steps.
  void fast_forward(std::int64_t epochs, std::int64_t steps);
  /// Whole epochs until its end; nothing if it has none.
  [[nodiscard]] std::optional<std::int64_t> epochs_left(
      std::int64_t steps_per_epoch) const;
  /// Errors: throws kMismatch (E_SCHEDULE_END) if the schedule ends before
  /// `epochs` more, which have `steps`, are made: it was planned for a shorter
  /// run.
  void check_room(
      std::int64_t epochs,
      std::int64_t steps,
      std::int64_t steps_per_epoch) const;
  /// What a cosine of epochs does that is planned for fewer than `epochs` more:
  /// its rate rises again. Empty for other schedules, and where it is long
  /// enough.
  [[nodiscard]] std::string overrun_text(std::int64_t epochs) const;
  Scheduler& scheduler() {
    return *scheduler_;
  }
  /// Of steps; null if there is none.
  Scheduler* warmup() {
    return warmup_.get();
  }
  /// Takes the schedule's place late in a run; null if nothing does.
  Scheduler* swa() {
    return swa_.get();
  }
  /// The warm-up of steps is over, whatever the rates are: of a checkpoint
  /// that has none.
  void skip_warmup();

 private:
  /// The epoch after which a cosine rises again, behind a warm-up, too; nothing
  /// for another schedule.
  [[nodiscard]] std::optional<std::int64_t> lowest_epoch() const;
  /// Its own steps from begin to end, which may be epochs; nothing if it has no
  /// end.
  [[nodiscard]] std::optional<std::int64_t> total_steps() const;
  /// An integer of the scheduler's state; nothing if it has none of the name.
  [[nodiscard]] std::optional<std::int64_t> saved_number(
      std::string_view key) const;

  Optimizer& optimizer_;
  bool is_per_step_ = false;
  std::shared_ptr<Scheduler> scheduler_;
  std::shared_ptr<Scheduler> warmup_;
  std::int64_t warmup_steps_ = 0;
  std::shared_ptr<Scheduler> swa_;
  std::int64_t swa_start_ = 0;
  /// The groups as the scheduler prepared them.
  std::vector<ParamGroup> first_groups_;
};

} // namespace lockstep::train
