// SPDX-License-Identifier: BSD-3-Clause
//
// `--freeze`: parameters that training leaves as they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/train/step_hook.h"

namespace lockstep::train {

struct FreezeOptions {
  /// Beginnings of names of parameters, with commas between: "layer1,conv1" has
  /// "layer1.0.conv1.weight" and "conv1.weight", and not "conv10.weight".
  std::string names = {};
  /// The epoch, from 1 on, from which on they are trained, too; 0: never.
  std::int64_t until = 0;
};

/// Switches `requires_grad` of the parameters off here, before a strategy looks
/// at it, until `FreezeOptions::until`, `StepHook::end_run` or the end of the
/// hook. A batch norm all of whose parameters are frozen, or one without any in
/// a frozen part, is in evaluation mode: its statistics stay. What the program
/// has frozen itself stays so.
/// Ownership: the hook borrows `module`.
///
/// Errors: throws kInvalidArgument (E_FREEZE) for a
/// name that no parameter has, with the nearest one, and if nothing is left to
/// train.
std::shared_ptr<StepHook> freeze(
    torch::nn::Module& module,
    const FreezeOptions& options);

} // namespace lockstep::train
