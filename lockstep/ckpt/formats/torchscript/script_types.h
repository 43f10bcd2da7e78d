// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's types of plain values, as its code spells them.
#pragma once

#include <optional>
#include <string>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// "Tensor", "int", "complex", "List[float]", "Tuple[float, float]"; nothing
/// for a value that must become an object, or cannot be held at all.
std::optional<std::string> script_type(const Value& value);

/// True if LibTorch's code can name an attribute so without quotes.
bool is_script_identifier(std::string_view name);

/// True if an attribute can have the name at all: printable ASCII without
/// quotes and backslashes.
bool can_be_attribute(std::string_view name);

} // namespace lockstep::ckpt::internal
