// SPDX-License-Identifier: BSD-3-Clause
//
// What Python sets on an object that has attributes already: BUILD and the
// rebuild functions update them, they replace none but those of equal names.
#pragma once

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// `state` with what `more` adds; each is None, a dict or the pair (attributes,
/// slots) of those. A later item of an equal key is the one that counts.
/// Errors: kCorrupt (E_PICKLE_TYPE) for a state that only its class knows.
Result<Value> joined_state(const Value& state, const Value& more);

} // namespace lockstep::ckpt
