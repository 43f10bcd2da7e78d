// SPDX-License-Identifier: BSD-3-Clause
//
// Tells weights from checkpoints that hold weights.
#pragma once

#include "lockstep/ckpt/value.h"

namespace lockstep {

/// True for a dict whose keys are text and whose values are all tensors, and
/// for an empty OrderedDict.
bool is_state_dict(const ckpt::Value& value);

/// The key under which a checkpoint holds weights: "state_dict" or "model";
/// null if neither does.
const char* weights_key(const ckpt::Value& value);

} // namespace lockstep
