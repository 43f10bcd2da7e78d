// SPDX-License-Identifier: BSD-3-Clause
//
// Values on their way from the master to a replica's device: many tensors in
// one transfer, and only when there is something new to send.
//
// Note [Buffers of earlier graphs]
// The graph of an earlier pass may hold a replica's buffer, whose values the
// next pass replaces by the module's. If forward wrote to either by an
// operation that LibTorch counts (`scale.copy_(x.max())`), the graph's gradient
// would be that of another output: what is sent is counted, too, and backward
// says "modified by an inplace operation". BatchNorm's kernels count no update
// of their statistics, and their gradients in training do not depend on them:
// where nothing was counted, what is sent is not, and graphs stay usable, as on
// one device. Nor is it where the CPU's memory shows that no bit changes.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/replica_group.h"

namespace lockstep::parallel {

/// Which values a copy was made from: the memory and its version. Writes past
/// LibTorch (through a raw pointer) are not seen.
class SourceMark {
 public:
  SourceMark() = default;
  explicit SourceMark(const at::Tensor& source) {
    note(source);
  }
  /// Becomes that of `source`; cheap where only the version is another one.
  void note(const at::Tensor& source);
  /// True if `source` still holds these values.
  [[nodiscard]] bool is_of(const at::Tensor& source) const;

 private:
  // Weak, so that its address is not used again, yet holds no memory.
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_{
      c10::intrusive_ptr<c10::StorageImpl>()};
  std::int64_t offset_ = 0;
  std::uint32_t version_ = 0;
};

/// Same sizes, strides and dtype.
bool same_form(const at::Tensor& a, const at::Tensor& b);

/// Copies from[i] to to[i], of the same form. Between different devices small
/// tensors of one dtype travel together, in transfers of about 10 MiB, as in
/// PyTorch. Returns what went between different devices.
Moved copy_coalesced(const TensorList& from, const TensorList& to);

/// The same below autograd, which counts no change.
Moved copy_unseen(const TensorList& from, const TensorList& to);

/// What a replica's buffer was at the last transfer to it.
struct BufferMark {
  SourceMark sent = {};
  SourceMark arrived = {};
};

/// Sends the master's buffers to a replica's, which get their form. Changes of
/// which LibTorch knows are counted, so that backward refuses the graph of an
/// earlier pass that holds other values: Note [Buffers of earlier graphs].
/// `marks` belong to the replica, one for each buffer, or none yet.
Moved copy_buffers(
    const TensorList& masters,
    TensorList& mine,
    std::vector<BufferMark>& marks);

} // namespace lockstep::parallel
