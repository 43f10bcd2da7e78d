// SPDX-License-Identifier: BSD-3-Clause
//
// What the pickle machine makes of a value, for the file's budget.
//   LOCKSTEP_TRY(budget.make(bytes_of_call(name, args)));
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// A value on the stack, in a list or in a dict. Units: bytes.
inline constexpr std::uint64_t kValueBytes = sizeof(Value);

/// What a value takes by itself, if nobody else holds it: its node and its
/// text, without its elements. Units: bytes.
std::uint64_t bytes_of_node(const Value& value);

/// What a call of `name` copies of its arguments. Units: bytes.
std::uint64_t bytes_of_call(std::string_view name, const Tuple& args);

/// What a copy of `value` takes, those of a tuple's items, too: a persistent
/// id, a state. Units: bytes.
std::uint64_t bytes_of_copy(const Value& value);

} // namespace lockstep::ckpt::internal
