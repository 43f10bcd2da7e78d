// SPDX-License-Identifier: BSD-3-Clause
//
// `--clip-grad` and `--clip-value`: Python's torch.nn.utils.clip_grad_norm_ and
// clip_grad_value_, in its bits.
#pragma once

#include <memory>

#include "lockstep/train/step_hook.h"

namespace lockstep::train {

/// All gradients are scaled down to the 2-norm `max_norm` where their common
/// norm is larger: by max_norm / (norm + 1e-6). The host does not wait for the
/// device.
std::shared_ptr<StepHook> clip_norm(double max_norm);

/// Each number of the gradients is cut to [-bound, bound].
std::shared_ptr<StepHook> clip_value(double bound);

} // namespace lockstep::train
