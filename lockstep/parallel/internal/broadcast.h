// SPDX-License-Identifier: BSD-3-Clause
//
// Values on their way from the master to a replica's device: many tensors in
// one transfer, and only when there is something new to send.
#pragma once

#include <cstdint>

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

} // namespace lockstep::parallel
