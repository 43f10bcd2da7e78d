// SPDX-License-Identifier: BSD-3-Clause
//
// The toy dataset of the data-parallel tutorial: rows of normal numbers.
//   torch::manual_seed(0);
//   auto data = std::make_shared<RandomDataset>(5, 100);
#pragma once

#include "lockstep/data/dataset.h"

namespace lockstep {

/// `length` rows of `size` normal numbers, without targets.
class RandomDataset : public Dataset {
 public:
  /// Draws `torch.randn(length, size)` from the default generator: the same
  /// seed gives Python's numbers, bit for bit.
  /// Errors: throws kInvalidArgument for a negative size or length.
  RandomDataset(std::int64_t size, std::int64_t length);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  /// Errors: throws kInvalidArgument for an index outside the dataset.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      std::span<std::int64_t> targets) const override;

  /// Shape: [length, size] float32.
  [[nodiscard]] const at::Tensor& data() const {
    return data_;
  }

 private:
  at::Tensor data_;
};

} // namespace lockstep
