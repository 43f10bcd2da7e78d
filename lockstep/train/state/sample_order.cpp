// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/sample_order.h"

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/samplers.h"

namespace lockstep::train {

std::vector<std::int64_t> sample_order(
    std::int64_t samples,
    const SampleOrderOptions& options,
    const dist::ProcessGroup& group) {
  if (options.consumed < 0 || options.consumed > samples) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.order",
         .message = format(
             "{} samples of {} cannot be consumed",
             options.consumed,
             samples)});
  }
  // The order of all ranks, which is cut below.
  DistributedSampler sampler(
      samples,
      {.num_replicas = 1, .rank = 0, .seed = options.seed});
  sampler.set_epoch(options.epoch);
  const std::vector<std::int64_t> all = sampler.indices();
  const auto left = static_cast<std::size_t>(samples - options.consumed);
  const auto first = all.size() - left;
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::size_t rounds = (left + ranks - 1) / ranks;
  std::vector<std::int64_t> mine;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t place =
        round * ranks + static_cast<std::size_t>(group.rank());
    mine.push_back(all[first + place % left]);
  }
  return mine;
}

} // namespace lockstep::train
