// SPDX-License-Identifier: BSD-3-Clause
//
// A tree as one level of named tensors, for formats that know no nesting.
//   auto flat = flatten(root);       // {"model": {"w": t}} -> "model.w"
// A module gives the names of its state_dict.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// A tensor and its dotted name, as the content digest names it.
struct FlatTensor {
  std::string name = {};
  std::shared_ptr<const Tensor> tensor = {};
};

/// A value without parts that is not a tensor: number, text, None, dtype.
struct FlatScalar {
  std::string name = {};
  Value value = {};
};

/// What `flatten` gives, in the order of the tree.
struct FlatState {
  std::vector<FlatTensor> tensors = {};
  std::vector<FlatScalar> scalars = {};
};

/// Collects tensors and scalars. Attributes of an OrderedDict and empty
/// containers are left out.
/// Errors: kUnsupported (E_NOT_TENSOR) for an object that is not a module, a
/// set, or a tensor without bytes; kInvalidArgument (E_SAME_NAME) if two values
/// get one name; kUnsafe (E_DEPTH, E_LIMIT). The message names the value.
Result<FlatState> flatten(const Value& root);

/// Refuses tensors that share bytes, and a tensor that repeats its own: a
/// format without views would store those bytes several times.
/// Errors: kInvalidArgument (E_SHARED_TENSOR) with the names and `hint`.
Status check_not_shared(const FlatState& flat, const std::string& hint);

} // namespace lockstep::ckpt
