// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/hook_table.h"

#include <array>

#include "lockstep/train/hooks/clip_gradients.h"
#include "lockstep/train/hooks/early_stop.h"
#include "lockstep/train/hooks/frozen.h"
#include "lockstep/train/hooks/loss_scaler.h"
#include "lockstep/train/hooks/weight_average.h"

namespace lockstep::train {
namespace {

using Config = TrainConfig;
using Module = torch::nn::Module;

struct HookRow {
  bool (*is_on)(const Config& config) = nullptr;
  std::shared_ptr<StepHook> (*make)(const Config& config, Module& module) =
      nullptr;
};

constexpr std::array kRows{
    HookRow{
        [](const Config& config) { return !config.freeze.empty(); },
        [](const Config& config, Module& module) {
          return freeze(
              module,
              {.names = config.freeze, .until = config.unfreeze_at});
        }},
    HookRow{// before those that look at the gradients
            [](const Config& config) { return config.amp == "fp16"; },
            [](const Config& /*config*/, Module& /*module*/) {
              return loss_scaler();
            }},
    HookRow{
        [](const Config& config) { return config.clip_value > 0; },
        [](const Config& config, Module& /*module*/) {
          return clip_value(config.clip_value);
        }},
    HookRow{
        [](const Config& config) { return config.clip_grad > 0; },
        [](const Config& config, Module& /*module*/) {
          return clip_norm(config.clip_grad);
        }},
    HookRow{
        [](const Config& config) { return config.ema > 0; },
        [](const Config& config, Module& module) {
          return weight_average(module, config.ema);
        }},
    HookRow{
        [](const Config& config) { return config.swa_start > 0; },
        [](const Config& config, Module& module) {
          return mean_of_epochs(module, config.swa_start);
        }},
    HookRow{
        [](const Config& config) { return config.patience > 0; },
        [](const Config& config, Module& /*module*/) {
          return early_stop(config.patience);
        }},
};

} // namespace

StepHooks hooks_for(const TrainConfig& config, torch::nn::Module& module) {
  StepHooks hooks;
  for (const HookRow& row : kRows) {
    if (row.is_on(config)) {
      hooks.push_back(row.make(config, module));
    }
  }
  return hooks;
}

} // namespace lockstep::train
