// SPDX-License-Identifier: BSD-3-Clause
//
// The dictionaries in which training scripts keep the state of a run, brought
// into one form:
//   {epoch (the next one), state_dict, best_acc1, optimizer, scheduler, ...}
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::train {

/// A checkpoint in Lockstep's form.
struct RunCheckpoint {
  ckpt::Value root = {};
  /// Whose form the file has: "Lockstep", "torchvision", "timm", ...
  std::string layout = {};
  /// Whether Lockstep wrote it.
  bool is_ours = false;
  /// For the log: what was understood of a form that is not ours.
  std::vector<std::string> notes = {};
  /// As `args`, of what the file lets guess only: a setting that is given
  /// counts more.
  ckpt::Value guessed_args = ckpt::Value::dict({});
};

/// Takes what Lockstep, PyTorch's examples and tutorials (`{epoch,
/// model_state_dict, optimizer_state_dict, loss}`), torchvision's and timm's
/// scripts write, `{epoch, model, optimizer, scheduler}` and
/// `{epoch, best_mIoU, state_dict, optimizer}`. The entries themselves stay as
/// they are; the model's name and what the optimizer and the schedule say of
/// their settings become `args`. A best value of another metric than accuracy
/// is left, with a note; a note names what else is not used. `path` is for
/// messages. Errors: throws kMismatch (E_NOT_A_RUN) that names the missing keys
/// and says what to do.
RunCheckpoint to_run_checkpoint(
    const ckpt::Value& root,
    const std::string& path);

} // namespace lockstep::train
