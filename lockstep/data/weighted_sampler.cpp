// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/multinomial.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/permutation.h"
#include "lockstep/data/samplers.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.sampler",
       .message = std::move(message)});
}

} // namespace

WeightedRandomSampler::WeightedRandomSampler(
    std::vector<double> weights,
    std::int64_t num_samples,
    bool replacement)
    : weights_(std::move(weights)),
      num_samples_(num_samples),
      replacement_(replacement) {
  if (num_samples <= 0) {
    refuse(format(
        "num_samples should be a positive integer value, but got "
        "num_samples={}",
        num_samples));
  }
  const auto bad = std::ranges::find_if(weights_, [](double weight) {
    return !std::isfinite(weight) || weight < 0;
  });
  if (bad != weights_.end()) {
    refuse(format(
        "weight {} must be a number of at least 0, got {}",
        bad - weights_.begin(),
        *bad));
  }
  const auto drawable =
      std::ranges::count_if(weights_, [](double weight) { return weight > 0; });
  const std::int64_t needed = replacement ? 1 : num_samples;
  if (drawable < needed) {
    refuse(format(
        "{} samples have a weight above 0; expected at least {}",
        drawable,
        needed));
  }
}

std::vector<std::int64_t> WeightedRandomSampler::next_epoch() {
  internal::draw_seed();
  const at::Tensor weights = at::from_blob(
      weights_.data(),
      {static_cast<std::int64_t>(weights_.size())},
      at::kDouble);
  const at::Tensor order = at::multinomial(weights, num_samples_, replacement_);
  const auto* first = order.const_data_ptr<std::int64_t>();
  return {first, first + num_samples_};
}

} // namespace lockstep
