// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/blocks.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/Parallel.h>

namespace lockstep::internal {
namespace {

// Of float32: 128 KiB each of a parameter, its gradient, a temporary and up to
// three tensors of state. A multiple of every vector width, so that no element
// moves from a kernel's vector loop to its remainder.
constexpr std::int64_t kBlockElements = 32'768;

bool can_divide(std::span<const at::Tensor> tensors) {
  const at::Tensor& first = tensors.front();
  if (first.numel() <= kBlockElements || at::get_num_threads() != 1) {
    return false;
  }
  return std::ranges::all_of(tensors, [&first](const at::Tensor& tensor) {
    return !tensor.defined() ||
           (tensor.is_cpu() && tensor.layout() == at::kStrided &&
            tensor.is_non_overlapping_and_dense() &&
            tensor.sizes() == first.sizes() &&
            tensor.strides() == first.strides());
  });
}

} // namespace

void in_blocks(std::span<const at::Tensor> tensors, const BlockUpdate& update) {
  if (!can_divide(tensors)) {
    update(tensors);
    return;
  }
  const std::int64_t numel = tensors.front().numel();
  std::vector<at::Tensor> block(tensors.size());
  for (std::int64_t begin = 0; begin < numel; begin += kBlockElements) {
    const std::int64_t size = std::min(kBlockElements, numel - begin);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor& whole = tensors[i];
      if (whole.defined()) {
        block[i] =
            whole.as_strided({size}, {1}, whole.storage_offset() + begin);
      }
    }
    update(block);
  }
}

} // namespace lockstep::internal
