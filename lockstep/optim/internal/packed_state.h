// SPDX-License-Identifier: BSD-3-Clause
//
// Groups and state of an optimizer, ours or LibTorch's, to and from the value
// tree, by Python's rules.
#pragma once

#include <vector>

#include "lockstep/optim/optimizer.h"

namespace lockstep::internal {

/// What a file holds, made ready for an optimizer.
struct Unpacked {
  /// The live parameters with the file's options.
  std::vector<ParamGroup> groups = {};
  /// Copies, with the parameters' devices and dtypes.
  StateTable state = {};
};

/// `{'state': {...}, 'param_groups': [...]}`. Tensors alias those of `state`.
ckpt::Value pack(
    const std::vector<ParamGroup>& groups,
    const StateTable& state);

/// Fits `given` to the parameters of `live`, by position, or by name where both
/// have the same names in a group. Groups of older files are completed;
/// `defaults` names what each must have then; options that are tensors of one
/// element become numbers. Errors: throws kMismatch, and kUnsupported if
/// `kind.check` does.
Unpacked unpack(
    const ckpt::Value& given,
    const std::vector<ParamGroup>& live,
    const std::vector<NamedOption>& defaults,
    const OptimizerKind& kind);

} // namespace lockstep::internal
