// SPDX-License-Identifier: BSD-3-Clause
//
// The prefix by which the keys of a file differ from a module's: "module." of
// DataParallel, or any other that all keys share.
#pragma once

#include <span>
#include <string>

#include "lockstep/ckpt/value.h"

namespace lockstep {

/// What to do to the file's keys; both empty: nothing.
struct PrefixFit {
  std::string strip = {};
  std::string add = {};

  friend bool operator==(const PrefixFit&, const PrefixFit&) = default;
};

/// The edit after which most of the file's keys are the model's; none where
/// that many fit as they are.
PrefixFit fit_prefix(
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
