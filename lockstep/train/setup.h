// SPDX-License-Identifier: BSD-3-Clause
//
// Makes what a run works with, as a TrainConfig says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/base/world.h"
#include "lockstep/data/loader.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/train/own_parts.h"
#include "lockstep/train/schedule.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {

/// The processes that share a run.
struct Ranks {
  int size = 1;
  /// Which of them this is.
  RankInfo place = {};
  /// With which they average their gradients.
  dist::ProcessGroup group = {};
};

/// Something that the user should know when the run starts.
struct StartLine {
  LogLevel level = LogLevel::kInfo;
  std::string text = {};
};

/// The working parts of a run. Later ones use earlier ones.
struct Setup {
  /// What was decided on the way.
  std::vector<StartLine> lines = {};
  std::vector<c10::Device> devices = {};
  std::shared_ptr<const Dataset> train_set = {};
  std::unique_ptr<Loader<Batch>> train_data = {};
  /// Null in a run without a test.
  std::unique_ptr<Loader<Batch>> test_data = {};
  /// How many samples of the data sets are used.
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
  /// Units: pixels of both sides of the images; 0 if they are not square.
  std::int64_t img_size = 0;
  AnyModel model = {};
  std::unique_ptr<Strategy> strategy = {};
  std::unique_ptr<Optimizer> optimizer = {};
  std::unique_ptr<Schedule> schedule = {};

  Ranks ranks = {};

  /// Steps of an epoch in which `samples` are left for all ranks.
  [[nodiscard]] std::int64_t steps_of(std::int64_t samples) const;
  /// Steps of `epochs`, of whose first `consumed` samples are done.
  [[nodiscard]] std::int64_t steps_left(
      std::int64_t epochs,
      std::int64_t consumed) const;
};

/// Opens the data, sets threads, kernels and the seed, and builds the model
/// with its first weights. `ranks` share the samples of an epoch, of each batch
/// the same number, and the named devices, one each.
/// Errors: throws what the parts throw; kInvalidArgument for a batch or devices
/// that cannot be shared so, and for parts of a program that do not go together
/// (E_OWN_PARTS).
Setup set_up(
    const TrainConfig& config,
    const OwnParts& own,
    FileSystem& fs,
    const Ranks& ranks = {});

} // namespace lockstep::train
