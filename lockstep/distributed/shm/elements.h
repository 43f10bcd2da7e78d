// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors as plain bytes.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/distributed/shm/byte_collectives.h"

namespace lockstep::dist::shm {

/// The elements of a tensor in order, in the CPU's memory: its own memory if it
/// is so, else a copy.
class Elements {
 public:
  explicit Elements(const at::Tensor& tensor)
      : tensor_(tensor),
        elements_(tensor.cpu().contiguous().resolve_conj().resolve_neg()) {}

  [[nodiscard]] Bytes bytes() const {
    return {static_cast<std::byte*>(elements_.data_ptr()), elements_.nbytes()};
  }
  /// After its bytes have changed.
  void write_back() {
    if (elements_.numel() > 0 &&
        elements_.const_data_ptr() != tensor_.const_data_ptr()) {
      tensor_.copy_(elements_.view(tensor_.sizes()));
    }
  }

 private:
  at::Tensor tensor_;
  at::Tensor elements_;
};

inline std::vector<Elements> elements_of(
    const std::vector<at::Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

template <class Span>
std::vector<Span> bytes_of(const std::vector<Elements>& tensors) {
  std::vector<Span> bytes;
  bytes.reserve(tensors.size());
  for (const Elements& tensor : tensors) {
    bytes.push_back(tensor.bytes());
  }
  return bytes;
}

} // namespace lockstep::dist::shm
