// SPDX-License-Identifier: BSD-3-Clause
//
// The random numbers of one step for one sample, in the order they are drawn.
// augment.h says which words they are.
#pragma once

#include <cstdint>

#include "lockstep/data/internal/philox.h"

namespace lockstep::internal {

class Draws {
 public:
  Draws(
      std::int64_t seed,
      std::int64_t epoch,
      std::int64_t index,
      std::uint32_t step)
      : key_{low(seed), low(seed >> 32)},
        counter_{low(index), low(index >> 32), low(epoch), (step + 1) << 16} {}

  std::uint32_t word() {
    if (next_ == block_.size()) {
      block_ = philox(counter_, key_);
      ++counter_[3];
      next_ = 0;
    }
    return block_.at(next_++);
  }
  /// In [0, 1).
  double uniform() {
    constexpr double kWords = 4294967296.0;
    return word() / kWords;
  }
  double between(double first, double last) {
    return first + (last - first) * uniform();
  }
  /// A whole number from 0 on, below `bound`.
  std::int64_t below(std::int64_t bound) {
    return scale_to(word(), static_cast<std::uint32_t>(bound));
  }

 private:
  static std::uint32_t low(std::int64_t value) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value));
  }

  PhiloxKey key_;
  PhiloxBlock counter_;
  PhiloxBlock block_ = {};
  std::size_t next_ = 4;
};

} // namespace lockstep::internal
