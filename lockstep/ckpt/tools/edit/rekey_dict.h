// SPDX-License-Identifier: BSD-3-Clause
//
// Changes the keys of one dict, in order, and refuses collisions.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::ckpt::internal {

/// The new key; nothing if the entry goes.
using KeyMap =
    std::function<std::optional<std::string>(const std::string& key)>;

/// A copy of `weights` with other keys; attributes are copied as they are.
/// Keys that are not text stay. Notes what happened in `report`.
/// Errors: kInvalidArgument (E_KEY_COLLISION, E_KEY_EMPTY).
Result<Dict> rekey(const Dict& weights, const KeyMap& map, KeyReport& report);

} // namespace lockstep::ckpt::internal
