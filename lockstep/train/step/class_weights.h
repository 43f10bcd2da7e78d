// SPDX-License-Identifier: BSD-3-Clause
//
// How much classes count: `--class-weights` in the loss, `--sampler balanced`
// among the samples of an epoch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/dataset.h"

namespace lockstep::train {

/// What `--class-weights` says, by content: "", "balanced", or a number for
/// each class of `data` with commas between. A file holds YAML: a list of
/// numbers in the order of the classes, or a number for each class by its name.
/// Errors: throws kInvalidArgument (E_FLAG_VALUE) for what is neither a word
/// nor a file, and (E_CONFIG_FILE), naming the file, for weights that are not
/// those of the classes.
std::string resolved_class_weights(
    const std::string& text,
    const Dataset& data,
    FileSystem& fs);

/// Of each class, for the first `samples` of `data`: the numbers in `resolved`;
/// "balanced": samples / (classes * samples of the class), as scikit-learn's
/// compute_class_weight. Empty for "".
/// Errors: throws kInvalidArgument (E_FLAGS) for a balance of classes of which
/// one has no sample, or of targets that are not one class for each sample.
std::vector<double> class_weights(
    const std::string& resolved,
    const Dataset& data,
    std::int64_t samples);

/// Of each of the first `samples`: 1 / samples of its class, so that all
/// classes are drawn as often; 0 for one of no class.
/// Errors: throws kInvalidArgument (E_FLAGS) for targets that are not one class
/// for each sample.
std::vector<double> balanced_sample_weights(
    const Dataset& data,
    std::int64_t samples);

} // namespace lockstep::train
