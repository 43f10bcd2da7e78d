// SPDX-License-Identifier: BSD-3-Clause
//
// Goes over the elements of a strided tensor, row by row.
//   for (RowMajor at(tensor); ...; at.next()) { at.offset(); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {

/// Ownership: `tensor` outlives it. Behind the last element it starts again.
class RowMajor {
 public:
  explicit RowMajor(const Tensor& tensor)
      : tensor_(tensor), index_(tensor.sizes.size()), offset_(tensor.offset) {}

  /// Units: elements from the start of the storage.
  [[nodiscard]] std::size_t offset() const {
    return static_cast<std::size_t>(offset_);
  }
  /// Along each dimension.
  [[nodiscard]] const std::vector<std::int64_t>& index() const {
    return index_;
  }
  void next() {
    for (std::size_t d = index_.size(); d-- > 0;) {
      offset_ += tensor_.strides[d];
      if (++index_[d] < tensor_.sizes[d]) {
        return;
      }
      offset_ -= tensor_.strides[d] * tensor_.sizes[d];
      index_[d] = 0;
    }
  }

 private:
  const Tensor& tensor_;
  std::vector<std::int64_t> index_;
  std::int64_t offset_;
};

} // namespace lockstep::ckpt::internal
