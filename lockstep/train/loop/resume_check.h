// SPDX-License-Identifier: BSD-3-Clause
//
// What a run that goes on takes from the checkpoint and what from its user, and
// whether it can have the bits of one without interruption.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/loop/cursor.h"
#include "lockstep/train/loop/run_identity.h"
#include "lockstep/train/loop/run_start.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// Takes the checkpoint's image size where `config` has none.
/// `config.model` is as `with_own_names` has it.
/// Errors: throws kMismatch for what the run cannot go on with: another model
/// (E_OTHER_MODEL), optimizer, schedule or image size (E_OTHER_SETTING). A
/// program's own parts may go on from a checkpoint that names Lockstep's or
/// foreign ones: programs have classes of these names, too.
void refuse_contradictions(TrainConfig& config, const Resumption& from);

/// Gives settings that the saved optimizer and schedule decide (rates,
/// momentum, ...) the values of the checkpoint's `args`. Returns a line for
/// each setting that differs: which value counts, and where it comes from.
std::vector<StartLine> take_settings(
    TrainConfig& config,
    const ckpt::Value& args,
    const SettingSources& sources = {});

/// The flag with which the state of the checkpoint's optimizer and schedule
/// fits where that of `config` does not; what to do if there is none. Empty if
/// both are of the classes that `config` asks for.
std::string state_hint(const Resumption& from, const TrainConfig& config);

/// `error`, with the checkpoint and a hint where it has none.
Error naming(Error error, const Resumption& from, const TrainConfig& config);

/// `work()`, whose errors say where what does not fit comes from, and which
/// flag would fit.
template <class Work>
void naming_the_file(
    const Resumption& from,
    const TrainConfig& config,
    const Work& work) {
  try {
    work();
  } catch (const Exception& exception) {
    raise(naming(exception.error(), from, config));
  }
}

/// What is known once a checkpoint is loaded.
struct ResumeCheck {
  const Cursor& cursor;
  const RunIdentity& identity;
  /// Keys that the checkpoint lacks and that decide bits.
  const std::vector<std::string>& missing;
  /// The checkpoint.
  const std::string& path;
};

/// Warnings: how each missing part begins, and what makes the bits differ; none
/// if they will be equal.
/// Errors: throws kMismatch inside an epoch whose samples would be others
/// (E_OTHER_SAMPLES), and instead of the warnings with `--resume-exact`
/// (E_NOT_EXACT).
std::vector<std::string> check_resume(
    const ResumeCheck& check,
    const TrainConfig& config);

} // namespace lockstep::train
