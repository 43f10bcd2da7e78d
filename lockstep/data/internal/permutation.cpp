// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/permutation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randperm.h>

namespace lockstep::internal {

std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t seed) {
  const at::Tensor order =
      at::randperm(n, at::detail::createCPUGenerator(seed), at::kLong);
  const auto* first = order.const_data_ptr<std::int64_t>();
  return {first, first + n};
}

std::int64_t draw_seed() {
  return at::empty({}, at::kLong).random_().item<std::int64_t>();
}

} // namespace lockstep::internal
