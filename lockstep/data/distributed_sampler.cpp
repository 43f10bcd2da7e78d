// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/rank_info.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/permutation.h"
#include "lockstep/data/samplers.h"

namespace lockstep {
namespace {

void invalid_sampler(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.sampler",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

void warn_of_repeats(std::int64_t size, std::int64_t replicas) {
  TORCH_WARN(format(
      "DistributedSampler repeats {} of {} samples, so that each of {} ranks "
      "has as many; in an evaluation they count twice: set "
      "DistributedSamplerOptions::exact for one",
      replicas - size % replicas,
      size,
      replicas));
}

} // namespace

DistributedSampler::DistributedSampler(
    std::int64_t dataset_size,
    const DistributedSamplerOptions& options)
    : dataset_size_(dataset_size),
      num_replicas_(
          options.num_replicas ? *options.num_replicas
                               : job_rank().value().size),
      rank_(options.rank ? *options.rank : job_rank().value().rank),
      options_(options) {
  if (dataset_size < 0) {
    invalid_sampler(
        format("dataset size must not be negative, got {}", dataset_size));
  }
  const std::int64_t replicas = num_replicas_;
  if (replicas < 1) {
    invalid_sampler(format("num_replicas must be 1 or more, got {}", replicas));
  }
  if (rank_ < 0 || rank_ >= replicas) {
    invalid_sampler(format(
        "Invalid rank {}, rank should be in the interval [0, {}]",
        rank_,
        replicas - 1));
  }
  if (options.drop_last && options.exact) {
    invalid_sampler("drop_last leaves samples out, which exact does not");
  }
  const std::int64_t rest = dataset_size % replicas;
  const bool has_more =
      options.exact ? rank_ < rest : !options.drop_last && rest != 0;
  num_samples_ = dataset_size / replicas + (has_more ? 1 : 0);
  if (has_more && !options.exact && !options.shuffle && rank_ == 0) {
    warn_of_repeats(dataset_size, replicas);
  }
}

std::vector<std::int64_t> DistributedSampler::indices() const {
  std::vector<std::int64_t> order;
  if (options_.shuffle) {
    // Unsigned: a sum beyond the range wraps instead of being undefined.
    order = internal::permutation(
        dataset_size_,
        static_cast<std::uint64_t>(options_.seed) +
            static_cast<std::uint64_t>(epoch_));
  } else {
    order.resize(static_cast<std::size_t>(dataset_size_));
    std::iota(order.begin(), order.end(), std::int64_t{0});
  }
  std::vector<std::int64_t> mine;
  mine.reserve(static_cast<std::size_t>(num_samples_));
  for (std::int64_t i = 0; i < num_samples_; ++i) {
    const std::int64_t place = rank_ + i * num_replicas_;
    mine.push_back(order[static_cast<std::size_t>(place % dataset_size_)]);
  }
  return mine;
}

} // namespace lockstep
