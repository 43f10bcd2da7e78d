// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/random_sampler.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/permutation.h"

namespace lockstep {
namespace {

std::int64_t draw() {
  return at::empty({}, at::kLong).random_().item<std::int64_t>();
}

} // namespace

RandomSampler::RandomSampler(std::int64_t dataset_size)
    : dataset_size_(dataset_size) {
  if (dataset_size < 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.sampler",
         .message = format(
             "dataset size must not be negative, got {}",
             dataset_size)});
  }
}

std::vector<std::int64_t> RandomSampler::next_epoch() {
  draw(); // Python's loader seeds its worker processes with this one
  return internal::permutation(
      dataset_size_,
      static_cast<std::uint64_t>(draw()));
}

} // namespace lockstep
