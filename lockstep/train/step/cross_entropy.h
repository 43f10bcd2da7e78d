// SPDX-License-Identifier: BSD-3-Clause
//
// The loss of classes that count differently.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/train/task.h"

namespace lockstep::train {

/// `Task::divisor` of a `cross_entropy` with these weights: the sum of those of
/// the targets that are counted; of shares of classes their number. None
/// without weights.
std::function<double(const at::Tensor& targets)> weighted_divisor(
    const std::vector<double>& class_weights);

} // namespace lockstep::train
