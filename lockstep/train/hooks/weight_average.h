// SPDX-License-Identifier: BSD-3-Clause
//
// `--ema`: Python's torch.optim.swa_utils.AveragedModel with
// get_ema_multi_avg_fn(decay), in its bits; `--swa-start`: the same class with
// the mean and the buffers.
#pragma once

#include <cstdint>
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

/// And the mean of epochs.
inline constexpr std::string_view kMeanKey = "state_dict_swa";

/// Keeps the mean of the weights and buffers after the epochs from `start` on,
/// from 1 on, as `AveragedModel(model, use_buffers=True)` does: no pass over
/// the data is needed for the statistics of batch norms. Tests from there on
/// see it. Checkpoints hold it as `kMeanKey`, and how many epochs are in it as
/// `swa_updates`.
std::shared_ptr<StepHook> mean_of_epochs(
    torch::nn::Module& module,
    std::int64_t start);

} // namespace lockstep::train
