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

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/parallel/replica_pass.h"
#include "lockstep/parallel/scatter_gather.h"

namespace lockstep::parallel {

/// After forward: notes the inputs that were changed in `pass.changed`, and
/// makes those that take gradients outputs.
void find_changes(ReplicaPass& pass);

/// Brings the shards that `passes` changed back to `inputs`, cut along `dim`,
/// if those are on `home`; their versions count the change.
/// Errors: throws kUnsupported if a changed input takes gradients and is a view
/// of another tensor, whose graph would have to follow.
void write_back(
    std::span<const ReplicaPass> passes,
    const TensorList& inputs,
    c10::Device home,
    std::int64_t dim);

} // namespace lockstep::parallel
