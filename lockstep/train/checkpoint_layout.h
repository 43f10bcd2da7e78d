// SPDX-License-Identifier: BSD-3-Clause
//
// The dictionaries in which training scripts keep the state of a run, brought
// into one form:
//   {epoch (the next one), state_dict, best_acc1, optimizer, scheduler, ...}
#pragma once

#include <string>

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
  std::string note = {};
};

/// Takes what Lockstep, PyTorch's examples, torchvision's and timm's scripts
/// write, and `{epoch, model, optimizer, scheduler}`. The entries themselves
/// stay as they are; the model's name becomes `args`. `path` is for messages.
/// Errors: throws kMismatch that names the missing keys and says what to do.
RunCheckpoint to_run_checkpoint(
    const ckpt::Value& root,
    const std::string& path);

} // namespace lockstep::train
