// SPDX-License-Identifier: BSD-3-Clause
//
// Takes entries out of a checkpoint, keeps only some, or joins two: what
// `lockstep ckpt pick`, `drop` and `merge` do. Tensors are shared with the
// trees that come in, which stay as they are.
//   auto weights = pick(file.root, {"state_dict"});
//   auto smaller = drop(file.root, {"optimizer"});
#pragma once

#include <span>
#include <string>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/tools/edit/key_report.h"

namespace lockstep::ckpt {

/// Keeps what `names` say. One name that is a value of the tree, as
/// "state_dict" or "optimizer.state.0", becomes the whole tree. Several entries
/// of a checkpoint ("epoch", "state_dict") stay a checkpoint. Otherwise each
/// name is a weight, or a module with all weights below it ("layer1" keeps
/// "layer1.0.conv1.weight"), and the dict of the weights with these is the
/// tree; `_metadata` follows.
/// Errors: kNotFound (E_NO_KEY); kInvalidArgument without names.
Result<Edited> pick(const Value& root, std::span<const std::string> names);

/// Takes away what `names` say: entries of the tree by their dotted names
/// ("optimizer", "state_dict.fc.bias"), or weights and modules by theirs.
/// Errors: kNotFound (E_NO_KEY); kInvalidArgument without names.
Result<Edited> drop(const Value& root, std::span<const std::string> names);

/// How `merge` treats keys that both have.
struct MergeOptions {
  /// The second tree's value wins; otherwise a collision is an error.
  bool replace = false;
};

/// The weights of both, in the order of `first`, then `second`; beside them
/// the other entries of both checkpoints.
/// Errors: kInvalidArgument (E_KEY_COLLISION); as `weights_to_edit`.
Result<Edited> merge(
    const Value& first,
    const Value& second,
    const MergeOptions& options = {});

} // namespace lockstep::ckpt
