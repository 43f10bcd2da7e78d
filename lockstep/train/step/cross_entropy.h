// SPDX-License-Identifier: BSD-3-Clause
//
// The loss of classes that count differently.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/train/task.h"

namespace lockstep::train {

/// Of a `cross_entropy` with these: the sum of the weights of the targets that
/// are counted; without weights the samples times the share of their targets
/// that is counted; of shares of classes the samples.
TargetCount counted_divisor(
    std::int64_t ignore_index,
    const std::vector<double>& class_weights);

} // namespace lockstep::train
