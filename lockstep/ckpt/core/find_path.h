// SPDX-License-Identifier: BSD-3-Clause
//
// Finds a value by its dotted name: "state_dict.fc.weight",
// "optimizer.param_groups.0.lr". Keys may hold dots themselves.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The value at `path`; "" is `root` itself. Modules are entered by the names
/// of their state_dict, other objects by their state.
/// Ownership: shared with `root`. Errors: kNotFound, with the nearest names.
Result<Value> find_path(const Value& root, std::string_view path);

/// The tensors whose names begin with `prefix` and a dot, as a dict of the rest
/// of their names: "layer1.0" of a flat state_dict. Null if there are none.
/// Errors: kUnsafe (E_LIMIT).
Result<std::optional<Value>> find_below(
    const Value& root,
    std::string_view prefix);

} // namespace lockstep::ckpt
