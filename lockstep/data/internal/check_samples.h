// SPDX-License-Identifier: BSD-3-Clause
//
// What a sample must not be: a class outside the classes trains nothing or
// crashes a GPU; a number of a file that is not finite makes all weights NaN.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

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

/// `numbers` of the samples `indices`, as many of each; `what` they are:
/// "target", "input".
/// Errors: throws kInvalidArgument (E_NOT_FINITE), naming the first sample with
/// NaN or an infinity.
void check_finite(
    const Dataset& dataset,
    std::span<const std::int64_t> indices,
    std::span<const float> numbers,
    std::string_view what);

} // namespace lockstep::internal
