// SPDX-License-Identifier: BSD-3-Clause
//
// A target outside the classes trains nothing, or crashes a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"

namespace lockstep::internal {

/// `classes` are the targets of the samples `indices`.
/// Errors: throws kInvalidArgument (E_LABEL), naming the first sample whose
/// target is neither one of the classes, if their number is known, nor what is
/// not counted.
void check_classes(
    const Dataset& dataset,
    std::span<const std::int64_t> indices,
    std::span<const std::int64_t> classes);

} // namespace lockstep::internal
