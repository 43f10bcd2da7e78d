// SPDX-License-Identifier: BSD-3-Clause
//
// Another dataset's images in the size that a model takes.
//   auto large = std::make_shared<ResizedDataset>(train, 32, 32);
#pragma once

#include <memory>

#include "lockstep/data/dataset.h"
#include "lockstep/data/internal/resize_float.h"

namespace lockstep {

/// Resizes what `source` reads, after its transforms: bilinear with antialias,
/// in Python's bits (resize_float.h). Masks of classes are resized with the
/// images, to the nearest pixel as torch's "nearest" has it; other targets
/// stay.
class ResizedDataset : public Dataset {
 public:
  /// Errors: throws kInvalidArgument (E_IMAGE_SIZE) if the samples are no
  /// images [C, H, W], for targets of a program's own type, and for a size
  /// below 1.
  ResizedDataset(
      std::shared_ptr<const Dataset> source,
      std::int64_t height,
      std::int64_t width);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  /// A mask of the images' size gets their new one.
  [[nodiscard]] TargetFormat target_format() const override;
  [[nodiscard]] std::vector<std::string> class_names() const override;
  /// Of the images before they are resized.
  [[nodiscard]] PixelFormat pixel_format() const override;
  [[nodiscard]] std::string sample_name(std::int64_t index) const override;
  [[nodiscard]] std::uint64_t digest() const override;
  /// Errors: what `source` throws.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override;

 private:
  [[nodiscard]] bool has_masks() const;
  void resize_masks(
      std::span<const std::int64_t> originals,
      std::span<std::int64_t> masks) const;

  std::shared_ptr<const Dataset> source_;
  Resize resize_;
};

} // namespace lockstep
