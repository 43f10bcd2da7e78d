// SPDX-License-Identifier: BSD-3-Clause
//
// Finds a value by its dotted name: "state_dict.fc.weight",
// "optimizer.param_groups.0.lr". Keys may hold dots themselves.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The value at `path`; "" is `root` itself. Modules are entered by the names
/// of their state_dict, other objects by their state.
/// Ownership: shared with `root`. Errors: kNotFound, with the nearest names.
Result<Value> find_path(const Value& root, std::string_view path);

} // namespace lockstep::ckpt
