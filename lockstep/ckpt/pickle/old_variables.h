// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters and variables as torch 0.1 to 0.3 wrote them: objects around a
// tensor. Here they become tensors, as in newer files.
#pragma once

#include <span>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Replaces them below `root`; one that is shared stays shared. Gradients,
/// which torch 0.1 kept beside the data, are left out; hooks become an
/// attribute. `globals`: names that the file uses; without one of the two
/// classes there is nothing to look for.
void modernize_variables(Value& root, std::span<const GlobalUse> globals);

} // namespace lockstep::ckpt
