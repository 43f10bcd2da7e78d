// SPDX-License-Identifier: BSD-3-Clause
//
// Versions of PyTorch's module classes: what `_metadata` of a state_dict says,
// and what decides which keys a later `load_state_dict` expects.
#pragma once

#include <cstdint>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// `_version` of a whole module's class, 1 for a class that is not in the
/// table. A BatchNorm without `num_batches_tracked` (torch before 0.4.1) is of
/// version 1, whatever its class says today.
std::int64_t module_version(const Value& module);

} // namespace lockstep::ckpt
