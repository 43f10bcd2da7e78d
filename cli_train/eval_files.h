// SPDX-License-Identifier: BSD-3-Clause
//
// The files of `lockstep eval --output DIR`.
#pragma once

#include <string>
#include <vector>

#include "cli_train/eval_job.h"
#include "lockstep/base/fs.h"
#include "lockstep/data/images.h"

namespace lockstep::cli_train {

/// Pictures of the worst samples, five in a row, the highest loss first; of
/// masks each image, its mask and the prediction, side by side. Small ones are
/// magnified. Nothing if samples are no images.
Image worst_sheet(const EvalAnswer& answer);

/// Writes confusion.svg (of classes), metrics.json, worst.csv and, of images,
/// worst.png into `folder`, and returns their names.
/// Errors: throws kIo.
std::vector<std::string> write_eval_files(
    const EvalAnswer& answer,
    const std::string& folder,
    FileSystem& fs = real_fs());

} // namespace lockstep::cli_train
