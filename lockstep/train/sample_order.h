// SPDX-License-Identifier: BSD-3-Clause
//
// The order of an epoch's samples, from any point of it.
//   loader.start_epoch(sample_order(60000, {.seed = 0, .epoch = 3}), 3);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/distributed/process_group.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

struct SampleOrderOptions {
  std::int64_t seed = 0;
  std::int64_t epoch = 0;
  /// Samples of the epoch that all ranks together have consumed.
  std::int64_t consumed = 0;
  /// One for each sample: they are drawn with replacement, as many as there
  /// are, as Python's `WeightedRandomSampler` does with a generator seeded with
  /// seed + epoch. Empty: each sample comes once.
  std::span<const double> weights = {};
};

/// What this rank of `group` reads of the rest of an epoch of `samples`. From
/// the start it is the order of Python's `DistributedSampler`, or of its
/// `WeightedRandomSampler`, dealt in the same way; later the rest
/// of that order is dealt to the ranks, so that their number may have changed
/// and no sample is lost or read twice but for the few that fill up the last
/// round. Errors: throws kInvalidArgument if `consumed` is out of range, and
/// for another number of weights than of samples, or more than 2^24.
std::vector<std::int64_t> sample_order(
    std::int64_t samples,
    const SampleOrderOptions& options,
    const dist::ProcessGroup& group = {});

} // namespace lockstep::train
#pragma GCC visibility pop
