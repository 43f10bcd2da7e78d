// SPDX-License-Identifier: BSD-3-Clause
//
// What schedules share: errors, a value for each group, and the momentum that
// goes against the learning rate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/optimizer.h"

namespace lockstep::internal {

/// Throws kInvalidArgument: a bad option of a schedule.
[[noreturn]] void refuse_schedule(std::string message, std::string hint = {});

/// Errors: throws kInvalidArgument with PyTorch's text if `value` is below 1.
std::int64_t require_positive(std::string_view name, std::int64_t value);

/// One value for each group. Errors: throws kInvalidArgument with PyTorch's
/// text unless there is one value, or as many as groups.
std::vector<double> spread(
    std::string_view name,
    const std::vector<double>& values,
    std::size_t num_groups);

/// True if the momentum of the group is Adam's first beta. Errors: throws
/// kInvalidArgument with PyTorch's text if the group has no momentum.
bool uses_beta1(const ParamGroup& group);
void set_momentum(ParamGroup& group, bool use_beta1, double momentum);

} // namespace lockstep::internal
