// SPDX-License-Identifier: BSD-3-Clause
//
// The order of Python's `DataLoader(dataset, shuffle=True)`.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Shuffles a dataset from the default generator.
class RandomSampler {
 public:
  /// Units: `dataset_size` in samples.
  /// Errors: throws kInvalidArgument for a negative size.
  explicit RandomSampler(std::int64_t dataset_size);

  /// The order of the next epoch. Draws two int64 from the default generator,
  /// as Python's loader does each epoch; the second seeds the permutation.
  std::vector<std::int64_t> next_epoch();

 private:
  std::int64_t dataset_size_;
};

} // namespace lockstep
