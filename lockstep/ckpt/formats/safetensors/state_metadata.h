// SPDX-License-Identifier: BSD-3-Clause
//
// `_metadata` of state_dicts, the versions of their modules, as one text of
// `__metadata__`: {"": {"version": 1}, "bn1": {"version": 2}}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {

/// Name of that text. A value that becomes text may not be called so, as it
/// would come back as `_metadata`; a tensor may.
inline constexpr std::string_view kVersionsText = "torch._metadata";

/// What of the `_metadata` of several dicts is written.
struct Versions {
  /// As JSON, all in one: of a dict "model", the module "fc" is "model.fc", as
  /// are the names of its tensors. Nothing if nothing is left.
  std::optional<std::string> text = {};
  /// Names (`metadata_name`) of what is left out, all or in part: what JSON
  /// does not give back, what does not fit in 10 MB, and entries that differ
  /// from those of an outer dict for the same module.
  std::vector<std::string> lost = {};
};

/// Errors: kInvalidArgument (E_NAME) for a dict whose name is not UTF-8;
/// kUnsafe (E_LIMIT) where shared metadata expands to too much.
Result<Versions> plan_versions(const std::vector<FlatMetadata>& parts);

/// Back, as an OrderedDict; nothing for any other text.
std::optional<Value> read_versions(std::string_view text);

} // namespace lockstep::ckpt::internal
