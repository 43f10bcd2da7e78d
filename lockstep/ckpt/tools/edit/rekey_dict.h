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

/// The new key of the entry of a name (`key_text`); nothing if it goes.
using KeyMap =
    std::function<std::optional<std::string>(const std::string& name)>;

/// Keys that are not text, such as 0: they are as they are, or do what the map
/// says of their names as well.
enum class OtherKeys { kStay, kFollow };

/// A copy of `weights` with other keys; attributes are copied as they are.
/// Notes what happened in `report`.
/// Errors: kInvalidArgument (E_KEY_COLLISION, E_KEY_EMPTY).
Result<Dict> rekey(
    const Dict& weights,
    const KeyMap& map,
    KeyReport& report,
    OtherKeys others = OtherKeys::kStay);

} // namespace lockstep::ckpt::internal
