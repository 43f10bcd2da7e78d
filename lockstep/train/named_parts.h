// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of a run that settings name, as the command line has them:
//   Trainer trainer(config, {.own = named_parts(config)});
#pragma once

#include "lockstep/distributed/process_group.h"
#include "lockstep/train/own_parts.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// `given`, with the data sets of `settings.data` if it has no data, and with
/// the model of `settings.model` and the weights of `settings.seed` if it has
/// none. Random numbers go on from that seed then, on each rank of `group` from
/// another one. Threads and kernels are set as the trainer sets them.
/// Errors: throws as `checked_flags`, `open_dataset`, `make_model`,
/// `fit_images` and `choose_devices`.
OwnParts named_parts(
    const TrainConfig& settings,
    OwnParts given = {},
    const dist::ProcessGroup& group = dist::job_group());

/// The data sets of `settings.data` alone, for a model that is there already.
/// Errors: throws as `checked_flags` and `open_dataset`.
OwnParts named_data(const TrainConfig& settings);

} // namespace lockstep::train
