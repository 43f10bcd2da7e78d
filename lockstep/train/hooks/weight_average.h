// SPDX-License-Identifier: BSD-3-Clause
//
// `--ema`: Python's torch.optim.swa_utils.AveragedModel with
// get_ema_multi_avg_fn(decay), in its bits.
#pragma once

#include <memory>
#include <string_view>

#include "lockstep/train/step_hook.h"

namespace lockstep::train {

/// Where checkpoints hold the average, as timm's do.
inline constexpr std::string_view kAverageKey = "state_dict_ema";

/// Keeps the exponential average of the weights: after the first update of a
/// run the weights, after each other one average += (1 - decay) * (weights -
/// average). Buffers are those of the module. Tests see the average.
/// Checkpoints hold it as `kAverageKey`, with the module's names, and the
/// number of updates as `ema_updates`.
std::shared_ptr<StepHook> weight_average(
    torch::nn::Module& module,
    double decay);

} // namespace lockstep::train
