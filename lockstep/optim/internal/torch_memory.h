// SPDX-License-Identifier: BSD-3-Clause
//
// What our side keeps of one of LibTorch's optimizers: its groups as Python has
// them. It is in the optimizer's default options, where it lives as long as the
// optimizer and is found by all that wrap it.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/internal/two_sided_groups.h"

namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace lockstep::internal {

/// LibTorch's groups with the options that LibTorch has.
std::vector<ParamGroup> torch_groups(const torch::optim::Optimizer& optimizer);

/// Null if there is none yet.
std::shared_ptr<TwoSidedGroups> find_memory(
    const torch::optim::Optimizer& optimizer);

/// Made if there is none yet. An optimizer whose default options are of the
/// program's own class keeps none: each call makes another one.
/// Errors: throws kUnsupported for a class that we do not know.
std::shared_ptr<TwoSidedGroups> memory_of(torch::optim::Optimizer& optimizer);

/// Takes over what changed in LibTorch's groups, which it returns.
std::vector<ParamGroup> take_changes(
    const torch::optim::Optimizer& optimizer,
    TwoSidedGroups& memory);

/// The state of `optimizer` with these groups.
ckpt::Value pack_torch(
    const torch::optim::Optimizer& optimizer,
    const std::vector<ParamGroup>& groups);

} // namespace lockstep::internal
