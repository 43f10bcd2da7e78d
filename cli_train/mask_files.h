// SPDX-License-Identifier: BSD-3-Clause
//
// Masks as PNG files: grey, a pixel is the number of its class.
#pragma once

#include <functional>
#include <string>

#include "cli_train/prediction_job.h"

namespace lockstep::cli_train {

/// Writes a mask for each image, of its size, into `folder`: "cats/1.png" for
/// "photos/cats/1.jpg" of the folder "photos". `tell` gets both paths once the
/// mask is there.
/// Errors: throws kInvalidArgument (E_SAME_NAME), before anything is written,
/// for two images with one name, and for a mask that would take its image's
/// place; kIo; as `PredictionJob::run_masks`.
void write_masks(
    PredictionJob& job,
    const std::string& folder,
    const std::function<void(const std::string& path, const std::string& mask)>&
        tell);

} // namespace lockstep::cli_train
