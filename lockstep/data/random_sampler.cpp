// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/permutation.h"
#include "lockstep/data/samplers.h"

namespace lockstep {

RandomSampler::RandomSampler(std::int64_t dataset_size)
    : dataset_size_(dataset_size) {
  if (dataset_size <= 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.sampler",
         .message = format(
             "num_samples should be a positive integer value, but got "
             "num_samples={}",
             dataset_size)});
  }
}

std::vector<std::int64_t> RandomSampler::next_epoch() {
  internal::draw_seed();
  return internal::permutation(
      dataset_size_,
      static_cast<std::uint64_t>(internal::draw_seed()));
}

} // namespace lockstep
