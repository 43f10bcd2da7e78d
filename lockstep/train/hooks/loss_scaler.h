// SPDX-License-Identifier: BSD-3-Clause
//
// `--amp fp16`: gradients of float16 that would be too small are those of a
// loss times a large number, as Python's torch.amp.GradScaler has it.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/train/step_hook.h"

namespace lockstep::train {

/// Python's arguments of the same names.
struct LossScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  /// Steps without an overflow after which the scale grows.
  std::int64_t growth_interval = 2000;
};

/// Divides the gradients by the scale before other hooks see them. Where one is
/// not finite the optimizer makes no step, and the scale falls. Gradients that
/// ranks have averaged are the same on each, so all decide alike. Checkpoints
/// hold `GradScaler.state_dict()` as `scaler`.
std::shared_ptr<StepHook> loss_scaler(const LossScalerOptions& options = {});

} // namespace lockstep::train
