// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/dist/world.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include "lockstep/dist/internal/group_impl.h"

namespace lockstep::dist {

void GroupWorld::sum(std::span<double> values) {
  at::Tensor own =
      at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::ranges::copy(values, own.data_ptr<double>());
  // Gathered, then added by rank: a reduction's order is the backend's affair.
  std::ranges::fill(values, 0.0);
  for (const at::Tensor& part :
       group_.all_gather(own.to(group_.impl().object_device()))) {
    const at::Tensor here = part.cpu();
    const auto* const from = here.const_data_ptr<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += from[i];
    }
  }
}

bool GroupWorld::any(bool value) {
  at::Tensor flag = at::scalar_tensor(
      value ? 1 : 0,
      at::TensorOptions(group_.impl().object_device()).dtype(at::kLong));
  group_.all_reduce(flag, ReduceOp::kMax);
  return flag.item<std::int64_t>() != 0;
}

void GroupWorld::broadcast(std::vector<std::byte>& bytes) {
  at::Tensor size = at::scalar_tensor(
      static_cast<std::int64_t>(bytes.size()),
      at::TensorOptions(group_.impl().object_device()).dtype(at::kLong));
  group_.broadcast(size);
  const auto count = size.item<std::int64_t>();
  at::Tensor content = at::empty({count}, at::kByte);
  if (rank() == 0) {
    std::memcpy(content.data_ptr(), bytes.data(), bytes.size());
  }
  content = content.to(group_.impl().object_device());
  group_.broadcast(content);
  content = content.cpu();
  bytes.resize(static_cast<std::size_t>(count));
  std::memcpy(bytes.data(), content.const_data_ptr(), bytes.size());
}

} // namespace lockstep::dist
