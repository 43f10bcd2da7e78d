// SPDX-License-Identifier: BSD-3-Clause
//
// Data whose classes a trained model calls by other numbers.
#pragma once

#include <memory>

#include "lockstep/data/dataset.h"
#include "lockstep/train/checkpoints/trained_data.h"

namespace lockstep::train {

/// `data` with the class numbers of `trained`, found by their names; `data`
/// itself if they are the same, or have no names.
/// Errors: throws kMismatch (E_CLASSES) for a name that the model does not
/// know, (E_OTHER_DATA) for targets of another kind, and for another number of
/// classes without names.
std::shared_ptr<const Dataset> with_classes_of(
    std::shared_ptr<const Dataset> data,
    const TrainedData& trained);

} // namespace lockstep::train
