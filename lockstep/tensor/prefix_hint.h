// SPDX-License-Identifier: BSD-3-Clause
//
// What to try when the keys of a file do not fit a module.
#pragma once

#include <span>
#include <string>

#include "lockstep/ckpt/value.h"

namespace lockstep {

/// The option that makes `file_keys` fit `model_keys`, as a hint: one prefix
/// to strip or to add for all keys. Empty if there is none.
std::string prefix_hint(
    std::span<const std::string> model_keys,
    std::span<const std::string> file_keys);

/// A hint if `value` is a whole checkpoint that holds weights under a key
/// ("state_dict", "model"); empty otherwise.
std::string nested_weights_hint(const ckpt::Value& value);

} // namespace lockstep
