// SPDX-License-Identifier: BSD-3-Clause
//
// The options of a named model that takes samples of a shape.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"
#include "lockstep/models/model.h"

namespace lockstep::train {

/// What a model of `data` gives for a sample, or a pixel: its classes, or its
/// values.
std::int64_t outputs_of(const Dataset& data);

/// `shape` is {C, H, W}; anything else is a row of as many numbers, which only
/// `mlp` takes. `outputs`: classes or values.
ModelOptions model_options(
    std::int64_t outputs,
    std::span<const std::int64_t> shape);

} // namespace lockstep::train
