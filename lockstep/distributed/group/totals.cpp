// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers and answers of all ranks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include "lockstep/distributed/group/group_impl.h"

namespace lockstep::dist {

c10::Device internal::object_device(const ProcessGroup& group) {
  return group ? group.impl().object_device() : c10::Device(at::kCPU);
}

void ProcessGroup::sum(std::span<double> numbers) const {
  if (is_alone()) {
    return;
  }
  at::Tensor own =
      at::empty({static_cast<std::int64_t>(numbers.size())}, at::kDouble);
  std::ranges::copy(numbers, own.data_ptr<double>());
  // Gathered, then added by rank: a reduction's order is the backend's affair.
  std::ranges::fill(numbers, 0.0);
  for (const at::Tensor& part : all_gather(own.to(impl().object_device()))) {
    const at::Tensor here = part.cpu();
    const auto* const from = here.const_data_ptr<double>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] += from[i];
    }
  }
}

bool ProcessGroup::any(bool value) const {
  if (is_alone()) {
    return value;
  }
  at::Tensor flag = at::scalar_tensor(
      value ? 1 : 0,
      at::TensorOptions(impl().object_device()).dtype(at::kLong));
  all_reduce(flag, ReduceOp::kMax);
  return flag.item<std::int64_t>() != 0;
}

} // namespace lockstep::dist
