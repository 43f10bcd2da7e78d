// SPDX-License-Identifier: BSD-3-Clause
//
// Flags that do not go together, and those that do nothing where they are
// given: the first are refused, the second said.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/train/own_parts.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {

/// Errors: throws kInvalidArgument (E_FLAGS).
void refuse_flags(const TrainConfig& config, const TrainerOptions& options);

/// Errors: throws kInvalidArgument (E_FLAGS) for a lowest rate above the rate
/// of a group.
void check_rates(
    const TrainConfig& config,
    const std::vector<ParamGroup>& groups);

/// A sentence for each flag that does nothing, or is seldom meant. `task`: the
/// run's, of which a program's own is in `own`, too.
std::vector<std::string> idle_flags(
    const TrainConfig& config,
    const OwnParts& own,
    const Task& task,
    std::span<const c10::Device> devices);

/// Flags of parameter groups that are given where the groups of a checkpoint
/// with the settings `args`, null for none, count.
std::vector<std::string> group_flags_beside(
    const TrainConfig& config,
    const ckpt::Value* args);

} // namespace lockstep::train
