// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a run that goes on can have the bits of one without interruption.
#pragma once

#include <string>
#include <vector>

#include "lockstep/train/config.h"
#include "lockstep/train/cursor.h"
#include "lockstep/train/run_identity.h"

namespace lockstep::train {

/// Gives settings that the saved optimizer and schedule decide (rates,
/// momentum,
/// ...) the values of the checkpoint's `args`. Returns a warning for each that
/// `config` had otherwise.
std::vector<std::string> take_settings(
    TrainConfig& config,
    const ckpt::Value& args);

/// What is known once a checkpoint is loaded.
struct ResumeCheck {
  const Cursor& cursor;
  const RunIdentity& identity;
  /// Keys that the checkpoint lacks and that decide bits.
  const std::vector<std::string>& missing;
  /// The checkpoint.
  const std::string& path;
};

/// A warning that names what differs; empty if the bits will be equal.
/// Errors: throws kMismatch inside an epoch whose samples would be others, and
/// instead of the warning if `exact`.
std::string check_resume(const ResumeCheck& check, bool exact);

} // namespace lockstep::train
