// SPDX-License-Identifier: BSD-3-Clause
//
// The schedule that waits until a metric stops getting better.
//   ReduceLROnPlateau scheduler(sgd, {.patience = 5});
//   for (...) { train_one_epoch(); scheduler.step(validation_loss); }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/optim/scheduler.h"

namespace lockstep {

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

} // namespace lockstep
