// SPDX-License-Identifier: BSD-3-Clause
//
// Values as Python compares and reckons with them.
#pragma once

#include <optional>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// Python's `==` of keys that a dict can have: 1, 1.0 and True are one key, and
/// NaN is none twice. Of other types than None, numbers, text, bytes and tuples
/// only a node itself is equal; an int beyond 64 bits is equal to no float.
bool equal_keys(const Value& a, const Value& b);

/// The double nearest to an integer beyond 64 bits, as `float(n)` rounds it;
/// nothing where Python has an OverflowError.
std::optional<double> double_of(const BigInt& value);

} // namespace lockstep::ckpt::internal
