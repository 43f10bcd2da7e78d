// SPDX-License-Identifier: BSD-3-Clause
//
// `_metadata` of state_dicts, the versions of their modules, as one text of
// `__metadata__`: {"": {"version": 1}, "bn1": {"version": 2}}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {

/// Name of that text. No entry of a state_dict may be called so.
inline constexpr std::string_view kVersionsText = "torch._metadata";

/// As JSON, all in one: of a dict "model", the module "fc" is "model.fc", as
/// are the names of its tensors. Leaves out what JSON does not give back
/// (`keeps_safetensors_metadata`); nothing if nothing is left.
/// Errors: kInvalidArgument (E_LIMIT).
Result<std::optional<std::string>> versions_text(
    const std::vector<FlatMetadata>& parts);

/// Back, as an OrderedDict; nothing for any other text.
std::optional<Value> read_versions(std::string_view text);

} // namespace lockstep::ckpt::internal
