// SPDX-License-Identifier: BSD-3-Clause
//
// The groups of LibTorch's own optimizers, as Python has them.
//   for (ParamGroup& group : param_groups(optimizer)) {
//     std::cout << group.lr() << "\n";
//   }
#pragma once

#include <vector>

#include "lockstep/optim/param_group.h"

namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace lockstep {

/// The parameters with the options that `state_dict(optimizer)` saves; copies.
/// Errors: as `state_dict(const torch::optim::Optimizer&)`.
std::vector<ParamGroup> param_groups(const torch::optim::Optimizer& optimizer);

} // namespace lockstep
