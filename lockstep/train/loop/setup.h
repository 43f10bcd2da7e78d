// SPDX-License-Identifier: BSD-3-Clause
//
// Makes what a run works with of its parts, as its settings say.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "lockstep/data/loader.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/train/loop/run_start.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/step/schedule.h"
#include "lockstep/train/step_hook.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {

/// The working parts of a run. Later ones use earlier ones.
struct Setup {
  /// What was decided on the way.
  std::vector<StartLine> lines = {};
  std::vector<c10::Device> devices = {};
  std::shared_ptr<const Dataset> train_set = {};
  std::unique_ptr<Loader<Batch>> train_data = {};
  /// Null in a run without a test.
  std::unique_ptr<Loader<Batch>> test_data = {};
  /// As the model sees it; null in a run without a test.
  std::shared_ptr<const Dataset> test_set = {};
  /// How many samples of the data sets are used.
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
  /// How often each training sample is drawn; empty: an epoch has each once.
  std::vector<double> sample_weights = {};
  AnyModel model = {};
  /// With the optimizer.
  std::unique_ptr<Strategy> strategy = {};
  std::unique_ptr<Schedule> schedule = {};
  /// Those of the settings, then the program's.
  StepHooks hooks = {};
  /// The program has hooks or observers, which may do anything to the module.
  bool has_own_code = false;
  /// Batches of a step, whose gradients are added up.
  std::int64_t accumulate = 1;
  /// The ranks that share the run.
  dist::ProcessGroup group = {};

  /// Steps of so many batches of a rank.
  [[nodiscard]] std::int64_t steps_in(std::int64_t batches) const;
  /// Steps of an epoch in which `samples` are left for all ranks.
  [[nodiscard]] std::int64_t steps_of(std::int64_t samples) const;
  /// Steps of `epochs`, of whose first `consumed` samples are done.
  [[nodiscard]] std::int64_t steps_left(
      std::int64_t epochs,
      std::int64_t consumed) const;
};

/// Sets the threads, the kernels and the precision of this process, as `config`
/// says.
void prepare_process(const TrainConfig& config);

/// Prepares the process, shares the data out, loads first weights into the
/// model, and makes the optimizer with the groups of the checkpoint. The ranks
/// share the samples of an epoch, of each batch the same number, and the named
/// devices, one each.
/// Errors: throws what the parts throw; kInvalidArgument for a batch or devices
/// that cannot be shared so; kMismatch for groups that do not fit.
Setup set_up(const RunStart& start, const TrainerOptions& options);

} // namespace lockstep::train
