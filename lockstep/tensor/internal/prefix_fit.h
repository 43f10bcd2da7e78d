// SPDX-License-Identifier: BSD-3-Clause
//
// How the keys of a file become those of a module: wrappers ("module.",
// "_orig_mod.") on one side only, anywhere in the name, and one prefix that a
// side has around all of its keys ("model." of Lightning).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep {

/// What to call the file's keys.
struct KeyFit {
  /// One for each key of the file, in order.
  std::vector<std::string> keys = {};
  /// Two or more prefixes of the file below which the module's keys are, each
  /// with other tensors ("student.", "teacher."): then no key is changed.
  std::vector<std::string> rivals = {};
  /// The same of the module: prefixes below which the file's keys are, each
  /// with other tensors ("encoder.", "target.").
  std::vector<std::string> places = {};

  friend bool operator==(const KeyFit&, const KeyFit&) = default;
};

/// The names under which most keys fit; the file's own where that many fit as
/// they are. A name is never exchanged for another one, but for those of
/// wrappers and the usual "model" and "net". Parts with half as many keys are
/// rivals, too.
KeyFit fit_keys(
    std::span<const std::string> model_keys,
    std::span<const std::string> file_keys);

/// The option that makes `file_keys` fit `model_keys`, as a hint: one prefix
/// to strip or to add for all keys. Empty if there is none.
std::string prefix_hint(
    std::span<const std::string> model_keys,
    std::span<const std::string> file_keys);

/// A hint if `value` is a checkpoint that holds weights under a key
/// ("state_dict", "model"); empty otherwise.
std::string nested_weights_hint(const ckpt::Value& value);

} // namespace lockstep
