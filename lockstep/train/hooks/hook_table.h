// SPDX-License-Identifier: BSD-3-Clause
//
// The hooks that settings ask for. Adding one is a file, a flag and a row.
#pragma once

#include "lockstep/train/settings/config.h"
#include "lockstep/train/step_hook.h"

namespace lockstep::train {

/// In the order in which they are called. Ownership: they borrow `module`.
/// Errors: throws what the hooks throw.
StepHooks hooks_for(const TrainConfig& config, torch::nn::Module& module);

} // namespace lockstep::train
