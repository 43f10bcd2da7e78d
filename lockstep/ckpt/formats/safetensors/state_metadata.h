// SPDX-License-Identifier: BSD-3-Clause
//
// `_metadata` of a state_dict, the versions of its modules, as one text of
// `__metadata__`: {"": {"version": 1}, "bn1": {"version": 2}}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// Key of that text, and name of the attribute.
inline constexpr std::string_view kStateMetadata = "_metadata";

/// As JSON; nothing if there is more in it than dicts of texts, truth values,
/// None and whole numbers from 0 up.
std::optional<std::string> state_metadata_text(const Dict& metadata);

/// Back; nothing for any other text.
std::optional<Value> read_state_metadata(std::string_view text);

} // namespace lockstep::ckpt::internal
