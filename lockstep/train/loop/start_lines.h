// SPDX-License-Identifier: BSD-3-Clause
//
// What a run says about itself when it starts or goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/checkpoints.h"
#include "lockstep/train/loop/cursor.h"
#include "lockstep/train/loop/run_identity.h"
#include "lockstep/train/loop/setup.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// A run that is set up and, if it goes on, loaded.
struct StartingRun {
  const TrainConfig& config;
  const Setup& setup;
  const OwnParts& own;
  /// Where it goes on; nothing if it begins.
  const std::optional<ResumePoint>& from;
  const Cursor& cursor;
  const RunIdentity& identity;
};

/// Model, devices and kernels; data and folder; where it goes on.
std::vector<StartLine> start_lines(
    const StartingRun& run,
    const std::string& folder);

/// The same for observers.
StartRecord start_record(const StartingRun& run, const std::string& folder);

} // namespace lockstep::train
