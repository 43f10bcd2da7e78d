// SPDX-License-Identifier: BSD-3-Clause
//
// Labelled images of one size, kept as bytes in memory and transformed when
// they are read.
#pragma once

#include "lockstep/data/dataset.h"
#include "lockstep/data/gunzip.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

/// Images and labels as files hold them.
struct LabelledImages {
  ImageShape shape = {};
  /// Shape: [N, C, H, W] uint8, row-major.
  SharedBytes pixels = {};
  /// Shape: [N] uint8.
  SharedBytes labels = {};
  std::int64_t num_classes = 0;
};

/// A `Dataset` of `LabelledImages`.
class ImageDataset : public Dataset {
 public:
  /// Errors: throws kInvalidArgument for a wrong transform, for pixels and
  /// labels of different counts, and for a label that is no class.
  ImageDataset(LabelledImages images, const TransformOptions& transform);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  /// Errors: throws kInvalidArgument for an index outside the dataset.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      std::span<std::int64_t> targets) const override;

  /// The raw data.
  [[nodiscard]] const LabelledImages& images() const {
    return images_;
  }

 private:
  LabelledImages images_;
  Transform transform_;
};

} // namespace lockstep
