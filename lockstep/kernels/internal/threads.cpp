// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/threads.h"

#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>

namespace lockstep::kernels {

// TensorIterator's loops are compiled with LibTorch. The tensor it goes through
// has a byte for each step, which nobody reads: places in it are steps.
void in_threads(
    std::int64_t count,
    std::int64_t grain,
    c10::function_ref<void(std::int64_t begin, std::int64_t end)> work) {
  if (count <= grain || at::get_num_threads() == 1 ||
      at::in_parallel_region()) {
    if (count > 0) {
      work(0, count);
    }
    return;
  }
  at::Tensor steps = at::empty({count}, at::kByte);
  const auto* first = static_cast<const char*>(steps.const_data_ptr());
  auto iterator = at::TensorIterator::borrowing_nullary_op(steps);
  iterator.for_each(
      [&](char** data,
          const std::int64_t* /*strides*/,
          std::int64_t length,
          std::int64_t lines) {
        const std::int64_t begin = data[0] - first;
        work(begin, begin + length * lines);
      },
      grain);
}

void* thread_scratch(std::int64_t count) {
  thread_local std::vector<std::uint32_t> kept;
  if (std::ssize(kept) < count) {
    kept.resize(static_cast<std::size_t>(count));
  }
  return kept.data();
}

} // namespace lockstep::kernels
