// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/sample_order.h"

#include <string>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/samplers.h"

namespace lockstep::train {
namespace {

[[noreturn]] void refuse_order(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.order",
       .message = std::move(message)});
}

// Unsigned: a sum beyond the range wraps instead of being undefined.
std::uint64_t seed_of(const SampleOrderOptions& options) {
  return static_cast<std::uint64_t>(options.seed) +
         static_cast<std::uint64_t>(options.epoch);
}

std::vector<std::int64_t> drawn(const SampleOrderOptions& options) {
  constexpr std::size_t kMost = std::size_t{1} << 24; // of at::multinomial
  if (options.weights.size() > kMost) {
    refuse_order(format(
        "samples can be drawn of at most {}, not of {}",
        kMost,
        options.weights.size()));
  }
  const std::vector<double> weights(
      options.weights.begin(),
      options.weights.end());
  const at::Tensor order = at::multinomial(
      at::tensor(weights, at::TensorOptions(at::kDouble)),
      std::ssize(weights),
      /*replacement=*/true,
      at::detail::createCPUGenerator(seed_of(options)));
  const auto* first = order.const_data_ptr<std::int64_t>();
  return {first, first + order.numel()};
}

std::vector<std::int64_t> shuffled(
    std::int64_t samples,
    const SampleOrderOptions& options) {
  DistributedSampler sampler(
      samples,
      {.num_replicas = 1, .rank = 0, .seed = options.seed});
  sampler.set_epoch(options.epoch);
  return sampler.indices();
}

} // namespace

std::vector<std::int64_t> sample_order(
    std::int64_t samples,
    const SampleOrderOptions& options,
    const dist::ProcessGroup& group) {
  if (options.consumed < 0 || options.consumed > samples) {
    refuse_order(format(
        "{} samples of {} cannot be consumed",
        options.consumed,
        samples));
  }
  const bool are_drawn = !options.weights.empty();
  if (are_drawn && std::ssize(options.weights) != samples) {
    refuse_order(
        format("{} weights for {} samples", options.weights.size(), samples));
  }
  // The order of all ranks, which is cut below.
  const std::vector<std::int64_t> all =
      are_drawn ? drawn(options) : shuffled(samples, options);
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
