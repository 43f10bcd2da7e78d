// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/permutation.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/samplers.h"

namespace lockstep::internal {
namespace {

[[noreturn]] void cannot_resume(std::string message) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "data.loader",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

} // namespace

// Draws what Python's loader draws: a seed for its workers, and then one for
// the order, if it shuffles.
void Epochs::begin() {
  if (is_resumed_) {
    is_resumed_ = false;
    return;
  }
  const LoaderOptions& options = queue_.options();
  if (!options.sampler.draws()) {
    draw_seed();
  }
  const std::int64_t seed = options.shuffle ? draw_seed() : 0;
  const std::int64_t next = epoch_ + 1;
  start_at(order_of(next, seed), next, 0);
  seed_ = seed;
}

void Epochs::start(
    const std::vector<std::int64_t>& indices,
    std::int64_t epoch) {
  start_at(indices, epoch, 0);
  is_by_hand_ = true;
}

void Epochs::start_batches(IndexBatches batches, std::int64_t epoch) {
  queue_.start_batches(std::move(batches), epoch);
  epoch_ = epoch;
  before_ = 0;
  is_by_hand_ = true;
  is_resumed_ = false;
}

// Of a whole epoch all samples, also those that drop_last left out.
LoaderState Epochs::state() const {
  if (is_by_hand_) {
    cannot_resume(
        "the program gave the loader its order by start_epoch or "
        "start_batches, so the loader cannot say how to find it again: use "
        ".shuffle or .sampler");
  }
  const std::int64_t batches = queue_.position();
  const bool is_whole = batches == queue_.batches();
  return {
      .epoch = epoch_,
      .samples =
          is_whole ? size_ : before_ + batches * queue_.options().batch_size,
      .seed = seed_};
}

void Epochs::resume(const LoaderState& state) {
  const LoaderOptions& options = queue_.options();
  if (state.epoch < -1 || state.samples < 0) {
    raise_bad_option(format(
        "a loader cannot resume at epoch {}, sample {}",
        state.epoch,
        state.samples));
  }
  if (state.epoch >= 0 && options.sampler.draws()) {
    cannot_resume(
        "a sampler with next_epoch() draws another order each time, so a "
        "loader cannot go on in an old one: use .shuffle, or a sampler that "
        "knows the epoch");
  }
  if (state.epoch < 0) {
    start_at({}, state.epoch, 0); // as a new loader
    seed_ = 0;
    return;
  }
  std::vector<std::int64_t> order = order_of(state.epoch, state.seed);
  if (state.samples > std::ssize(order)) {
    raise_bad_option(format(
        "a loader cannot resume after {} samples of an epoch of {}",
        state.samples,
        order.size()));
  }
  start_at(std::move(order), state.epoch, state.samples);
  seed_ = state.seed;
  is_resumed_ = queue_.batches() > 0;
}

std::vector<std::int64_t> Epochs::order_of(
    std::int64_t epoch,
    std::int64_t seed) const {
  const LoaderOptions& options = queue_.options();
  if (options.sampler.is_given()) {
    return options.sampler.of_epoch(epoch);
  }
  if (options.shuffle) {
    return permutation(samples_, static_cast<std::uint64_t>(seed));
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples_));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

void Epochs::start_at(
    std::vector<std::int64_t> order,
    std::int64_t epoch,
    std::int64_t first) {
  const std::int64_t size = std::ssize(order);
  order.erase(order.begin(), order.begin() + first);
  const LoaderOptions& options = queue_.options();
  start_batches(
      make_batches(order, options.batch_size, options.drop_last),
      epoch);
  size_ = size;
  before_ = first;
  is_by_hand_ = false;
}

} // namespace lockstep::internal
