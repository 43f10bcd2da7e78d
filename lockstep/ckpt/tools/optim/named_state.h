// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizer states that call parameters by name, as those of
// `torch.distributed.checkpoint` and FSDP do, with indices in their place.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// A state_dict whose groups and state have indices.
struct NumberedState {
  Value state = {};
  /// What had to be guessed.
  std::vector<std::string> notes = {};
};

/// Names stand for indices by the groups: `params` are names, or `param_names`
/// lists them. If the groups have indices only, the names are in the order that
/// they have in `weights`, else in the state, and a note says so. A state with
/// indices is given back as it is.
/// Errors: kCorrupt (E_OPTIMIZER) if a name has no index.
Result<NumberedState> number_parameters(
    const Value& state,
    const Value* weights);

} // namespace lockstep::ckpt::internal
