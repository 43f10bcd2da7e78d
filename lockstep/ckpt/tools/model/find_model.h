// SPDX-License-Identifier: BSD-3-Clause
//
// Which model of a file is meant, if nobody says it.
#pragma once

#include <string>
#include <utility>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Errors of a file without a model, or with several (E_NO_MODEL).
Error no_model(ErrorCode code, std::string message, std::string hint);

/// True for a dict that has tensors itself.
bool has_tensor_entry(const Value& value);

struct FoundModel {
  /// Ownership: the tree's.
  const Value* value = nullptr;
  /// Its name; empty for the root.
  std::string key = {};
};

/// The root, or the only model among the entries of the top level; else, if
/// none of these holds weights, the only one that a name leads to: "state.net"
/// of dicts, lists and objects that hold models. Errors: kNotFound,
/// kInvalidArgument (E_NO_MODEL), kUnsafe (E_LIMIT).
Result<FoundModel> only_model(const Value& root);

} // namespace lockstep::ckpt
