// SPDX-License-Identifier: BSD-3-Clause
//
// Inputs that forward changes in place.
//
// Note [Inputs changed in place]
// With one device `relu_(x)` as the first layer changes the caller's x, and its
// gradient goes on through relu. Shards that share x's memory change it, too;
// what others changed is written back to x if it lives where the module does
// (else one device would have worked on a copy). An x that takes gradients
// becomes an output of the pass, so that gradients of whatever the caller does
// with it afterwards go through the replicas. Versions are counted for each
// shard, from 0: one replica's change does not make another's graph invalid.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/TensorImpl.h>

#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/internal/replica_pass.h"

namespace lockstep::parallel {

/// After forward: notes which of the inputs, made from `shards` of the caller's
/// `inputs`, were changed in `pass.changed`, if the caller's are on `home`;
/// those that take gradients become outputs. Errors: throws kUnsupported if an
/// input has another shape now.
void find_changes(
    ReplicaPass& pass,
    const TensorList& shards,
    const TensorList& inputs,
    c10::Device home);

/// "inputs 0, 2 changed in place", or nothing: to be the same in all replicas.
std::string changes_text(const ReplicaPass& pass);

/// Brings the shards that `passes` changed back to `inputs`, cut along `dim`;
/// the inputs' versions count it.
/// Errors: throws kUnsupported if a changed input shares memory with another
/// one, with itself, or takes gradients and retains its own or is a view of
/// another tensor, whose graph would have to follow.
void write_back(
    std::span<const ReplicaPass> passes,
    const TensorList& inputs,
    std::int64_t dim);

/// Shards have the memory of an input and version counts of their own. If the
/// caller changes the input before backward, what the replicas saved of them is
/// as invalid as it would be on one device. Holds no memory of a tensor.
class InputWatch {
 public:
  InputWatch(std::span<const ReplicaPass> passes, const TensorList& inputs);
  /// Counts changes of the inputs since the last call as changes of the shards.
  void pass_changes_on();

 private:
  struct Row {
    c10::VariableVersion input;
    std::uint32_t seen = 0;
    std::vector<c10::VariableVersion> shards = {};
  };
  std::vector<Row> rows_ = {};
};

} // namespace lockstep::parallel
