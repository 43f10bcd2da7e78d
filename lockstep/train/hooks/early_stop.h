// SPDX-License-Identifier: BSD-3-Clause
//
// `--patience`: a run that gets no better ends.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/train/step_hook.h"

namespace lockstep::train {

/// Done after so many epochs of which none was the best. Checkpoints hold how
/// many there were as `epochs_without_best`.
std::shared_ptr<StepHook> early_stop(std::int64_t patience);

} // namespace lockstep::train
