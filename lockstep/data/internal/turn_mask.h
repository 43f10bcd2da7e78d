// SPDX-License-Identifier: BSD-3-Clause
//
// Masks in step with their images: cropped and flipped as they are.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"

namespace lockstep::internal {

/// Crops and flips the masks [N, H, W] of the samples `indices` in place, as
/// `Transform` does it with their images. Padding is not counted.
void turn_masks(
    const TransformOptions& options,
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    const TargetFormat& format,
    std::int64_t num_classes,
    TargetRows targets);

} // namespace lockstep::internal
