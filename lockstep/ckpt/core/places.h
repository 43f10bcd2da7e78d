// SPDX-License-Identifier: BSD-3-Clause
//
// Names of the places in a value that no key or index leads to:
// "buffer.<args>.0" is the first argument of the call that makes `buffer`. And
// where a state_dict has no name either.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {

/// What a module holds beside its state_dict: "fc.<state>.cache".
inline constexpr std::string_view kStatePlace = "<state>";

/// The step to such a child: "<args>", "<keys>.0", "<attributes>.ema". Empty
/// for a child that a name leads to, and for parameters of quantization.
std::string place_step(const Value& parent, const Child& child);

/// The child whose name a module's state_dict leaves out: what PyTorch's
/// wrappers for activation checkpointing hold. Empty for other modules.
std::string_view unnamed_child(const Value& module);

/// True if `path` is `name`, or begins with it and a dot.
inline bool is_front(std::string_view path, std::string_view name) {
  return path.starts_with(name) &&
         (path.size() == name.size() || path[name.size()] == '.');
}

} // namespace lockstep::ckpt
