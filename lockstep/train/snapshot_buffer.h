// SPDX-License-Identifier: BSD-3-Clause
//
// Memory for a copy of a run's state, kept from one checkpoint to the next, so
// that training waits for a memory copy and for nothing else.
//   SnapshotBuffer buffer;
//   ckpt::Value owned = buffer.copy(state.save());
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/ckpt/value.h"

namespace lockstep::train {

/// Threads: one at a time.
class SnapshotBuffer {
 public:
  /// A tree like `live` whose tensors lie in this buffer; those that share a
  /// storage keep sharing it. What is no tensor is shared with `live`.
  /// Ownership: the copy keeps its bytes, but the next `copy` overwrites them:
  /// be done with the one before.
  ckpt::Value copy(const ckpt::Value& live);

 private:
  /// Shape: [bytes] uint8 each, in the order in which storages come.
  std::vector<at::Tensor> blocks_;
};

} // namespace lockstep::train
