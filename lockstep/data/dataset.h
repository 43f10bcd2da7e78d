// SPDX-License-Identifier: BSD-3-Clause
//
// Numbered images that become float32 batches. Samples of any other type:
// made_dataset.h.
// A dataset is immutable once built, so loader threads share it freely.
//   auto train = open_dataset("fashion-mnist", dir, /*train=*/true);
//   Loader loader(train, {.batch_size = 64, .workers = 1});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/batch_source.h"
#include "lockstep/tensor/structure_base.h"

namespace lockstep {

/// Samples that a training step takes at once.
struct Batch {
  /// Shape: [N, C, H, W] float32, or [N, ...] for other samples.
  at::Tensor images = {};
  /// Shape: [N] int64. Undefined for a dataset without targets.
  at::Tensor targets = {};

  /// Units: samples.
  [[nodiscard]] std::int64_t size() const {
    return images.defined() ? images.size(0) : 0;
  }
};

/// A module may take a whole batch: each replica gets its part.
template <>
struct Structure<Batch> : Fields<&Batch::images, &Batch::targets> {};

/// Numbered images. Threads: `read` may run in several threads at once.
class Dataset : public BatchSource<Batch> {
 public:
  /// Shape of one sample without the batch dimension: {1, 28, 28}.
  [[nodiscard]] virtual std::vector<std::int64_t> sample_shape() const = 0;
  /// Classes that targets count; 0 means that samples have no target.
  [[nodiscard]] virtual std::int64_t num_classes() const = 0;

  /// Writes the samples `indices`, one after the other, to `images`, and their
  /// targets to `targets` (not touched without targets). Random transforms use
  /// only their seed, `epoch` and the index of the sample.
  /// Units: `images` has indices.size() * (product of sample_shape()) floats.
  virtual void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      std::span<std::int64_t> targets) const = 0;

  [[nodiscard]] internal::ReadBatch reader(
      const LoaderOptions& options) const override;
};

} // namespace lockstep
