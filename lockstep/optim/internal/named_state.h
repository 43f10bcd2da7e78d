// SPDX-License-Identifier: BSD-3-Clause
//
// States whose parameters have names in place of numbers, as
// `torch.distributed.checkpoint.state_dict` makes them: nested
// ({'state': {'0.weight': ...}, 'param_groups': [{'params': ['0.weight']}]}) or
// flattened ({'state.0.weight.exp_avg': ..., 'param_groups.0.weight.lr': ...}).
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep::internal {

/// Gives a flattened state the nested form, in the groups of `live`; anything
/// else comes back as it is. Errors: throws kMismatch for another number of
/// parameters than `live` has, and if one group would have several values of
/// an option.
ckpt::Value nested_state(
    const ckpt::Value& saved,
    const std::vector<ParamGroup>& live);

/// Where each parameter of the group `saved` is in `group`: by name if both
/// have names, and the same ones, else in order.
std::vector<std::size_t> places_of(
    const ckpt::Value& saved,
    const ParamGroup& group);

/// Errors: throws kMismatch for a name that is in another group of `live` than
/// of the file: groups are matched by position.
void refuse_other_groups(
    const std::vector<ckpt::Value>& saved,
    const std::vector<ParamGroup>& live);

/// An id as the key of a table: "0.weight", "#3". Empty for any other value.
std::string id_text(const ckpt::Value& id);

/// The optimizer whose options a saved group has: "Adam", "RMSprop"; empty if
/// they are nobody's.
std::string kind_of_options(const ckpt::Value& group);

} // namespace lockstep::internal
