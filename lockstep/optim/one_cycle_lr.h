// SPDX-License-Identifier: BSD-3-Clause
//
// The 1cycle schedule: up to `max_lr`, then down to almost nothing, with the
// momentum going the other way. Step it after every batch.
//   OneCycleLR scheduler(optimizer, {.max_lr = {0.1}, .total_steps = 1000});
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/optim/scheduler.h"

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

} // namespace lockstep
