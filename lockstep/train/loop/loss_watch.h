// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a run still computes finite numbers: what becomes of a loss that is
// NaN or infinite, as `--on-nan` says.
//   LossWatch watch(config, group, [] { return newest_checkpoint; });
//   if (!std::isfinite(record.loss)) { watch.bad_step(record); } // may throw
//   warning = watch.end_epoch(epoch_record);                     // may throw
//   watch.check_state(*model, record.step);                      // may throw
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include <torch/nn/module.h>

#include "lockstep/distributed/process_group.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// Names of what the module has from the start with numbers that are not
/// finite, and no gradient changes: masks of -inf, for example.
std::set<std::string> infinite_constants(const torch::nn::Module& module);

/// True if every number of the module's parameters and buffers is finite, but
/// of those that are `left_out`.
bool has_finite_state(
    const torch::nn::Module& module,
    const std::set<std::string>& left_out = {});

/// Threads: one at a time; the ranks make the same calls. Errors: throws
/// kMismatch (E_NAN_LOSS), on all ranks, where a number of one is not finite
/// and the run is to stop.
class LossWatch {
 public:
  /// `checkpoint` is asked for the newest one when the run stops; "" if there
  /// is none. Of `module`, as it is before the run, `infinite_constants` are
  /// not looked at later. Ownership: borrows `config`.
  LossWatch(
      const TrainConfig& config,
      const dist::ProcessGroup& group,
      const torch::nn::Module& module,
      std::function<std::string()> checkpoint);

  /// After a step whose loss, over all ranks, was not finite.
  void bad_step(const StepRecord& record);
  /// After an epoch and its test, before anything of it is saved. Returns a
  /// warning, or nothing, and begins the next epoch.
  std::string end_epoch(const EpochRecord& record);
  /// Before a checkpoint is written.
  void check_state(const torch::nn::Module& module, std::int64_t step) const;
  /// After the checkpoint `path` was loaded: `--on-nan warn` saves what is not
  /// finite, too.
  void check_loaded(const torch::nn::Module& module, const std::string& path)
      const;

 private:
  [[nodiscard]] bool stops() const;
  [[noreturn]] void refuse(const std::string& what) const;

  const TrainConfig& config_;
  const dist::ProcessGroup group_;
  std::function<std::string()> checkpoint_;
  std::set<std::string> left_out_;
  /// Of this epoch.
  std::int64_t bad_steps_ = 0;
};

/// Whether losses of an epoch and of its test are finite: only then can it be
/// the best one.
bool is_finite(const EpochRecord& record);

} // namespace lockstep::train
