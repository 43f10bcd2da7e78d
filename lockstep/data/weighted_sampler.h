// SPDX-License-Identifier: BSD-3-Clause
//
// The order of Python's `DataLoader` with a `WeightedRandomSampler`: samples
// with a greater weight come more often.
//   WeightedRandomSampler sampler({0.1, 0.1, 0.8}, 100);
//   loader.start_epoch(sampler.next_epoch(), epoch);
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Draws samples from the default generator.
class WeightedRandomSampler {
 public:
  /// `weights`: one for each sample of the dataset, need not add up to 1. An
  /// epoch has `num_samples`; without `replacement` each at most once.
  /// Errors: throws kInvalidArgument for weights that are negative or not
  /// finite, and for fewer samples with a weight than an epoch needs.
  explicit WeightedRandomSampler(
      std::vector<double> weights,
      std::int64_t num_samples,
      bool replacement = true);

  /// The order of the next epoch. Draws from the default generator what
  /// Python's loader and sampler draw.
  std::vector<std::int64_t> next_epoch();

 private:
  std::vector<double> weights_;
  std::int64_t num_samples_;
  bool replacement_;
};

} // namespace lockstep
