// SPDX-License-Identifier: BSD-3-Clause
//
// An update reads and writes the same elements in several operations. On whole
// parameters each operation fetches them from memory again; on blocks that fit
// the L2 cache only the first one does. The elements' arithmetic is the same.
#pragma once

#include <functional>
#include <span>

#include <ATen/core/Tensor.h>

namespace lockstep::internal {

using BlockUpdate = std::function<void(std::span<const at::Tensor>)>;

/// Calls `update` with views of the same elements of all `tensors`, block after
/// block, or once with the tensors themselves: if they are small, not on the
/// CPU, not of one dense layout, or if this thread's operations use several
/// threads. Undefined tensors stay undefined.
void in_blocks(std::span<const at::Tensor> tensors, const BlockUpdate& update);

} // namespace lockstep::internal
