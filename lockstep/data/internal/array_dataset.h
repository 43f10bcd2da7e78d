// SPDX-License-Identifier: BSD-3-Clause
//
// Samples that lie in memory or in mapped files as arrays: CIFAR, IDX, npz,
// safetensors, pt, tables of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"

namespace lockstep::internal {

/// One row of elements for each sample, of one file.
struct ArrayRows {
  /// Ownership: keeps the bytes alive.
  std::shared_ptr<const void> owner = {};
  const std::byte* data = nullptr;
  /// Units: samples.
  std::int64_t count = 0;
  /// Units: bytes from one row to the next.
  std::int64_t stride = 0;
};

/// Elements of all samples, row-major within each.
struct ArrayElements {
  /// One after the other.
  std::vector<ArrayRows> rows = {};
  at::ScalarType type = at::kByte;
  /// Of one sample as it is stored.
  std::vector<std::int64_t> shape = {};

  /// Units: samples.
  [[nodiscard]] std::int64_t size() const;
  /// Units: elements of one sample.
  [[nodiscard]] std::int64_t numel() const;
  /// The first element of a sample.
  [[nodiscard]] const std::byte* row(std::int64_t index) const;
};

/// Rows of `tensor`, which is made contiguous first. Ownership: shares it.
ArrayElements elements_of(const at::Tensor& tensor);

/// A hash of the elements; of more than 64 MiB, of runs of rows, evenly spread.
std::uint64_t digest_of(const ArrayElements& elements, std::uint64_t hash);

/// The elements of a sample as whole numbers.
/// Units: `to` has `elements.numel()` numbers.
void read_integers(
    const ArrayElements& elements,
    std::int64_t index,
    std::span<std::int64_t> to);

/// What the samples of an `ArrayDataset` are.
struct ArraySamples {
  /// Bytes of three dimensions are images, which become x / 255 and go through
  /// the transform; other elements become floats as they are.
  ArrayElements inputs = {};
  /// Images are stored [H, W, C].
  bool is_channels_last = false;
  TargetFormat target = {};
  /// One class for each sample, if that is the target.
  std::vector<std::int64_t> classes = {};
  /// Otherwise: masks or values, none without a target.
  ArrayElements targets = {};
  std::int64_t num_classes = 0;
  std::vector<std::string> class_names = {};
  /// For messages: "train.npz".
  std::string file = {};
};

/// A `Dataset` of arrays.
class ArrayDataset : public Dataset {
 public:
  /// Mean 0 and std 1 where the options have none.
  /// Errors: throws kInvalidArgument for random transforms of samples that are
  /// no images of bytes, and what `Transform` throws.
  ArrayDataset(ArraySamples samples, TransformOptions transform);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] TargetFormat target_format() const override;
  [[nodiscard]] std::vector<std::string> class_names() const override;
  [[nodiscard]] PixelFormat pixel_format() const override;
  [[nodiscard]] std::string sample_name(std::int64_t index) const override;
  [[nodiscard]] std::uint64_t digest() const override;
  /// Errors: throws kInvalidArgument for an index outside and (E_NOT_FINITE)
  /// for an input or a value that is NaN or infinite, kMismatch (E_LABEL) for a
  /// mask with a number that is no class.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override;
  void read_targets(std::span<const std::int64_t> indices, TargetRows targets)
      const override;

 private:
  void read_target(std::int64_t index, std::size_t at, TargetRows targets)
      const;

  ArraySamples samples_;
  std::vector<std::int64_t> shape_;
  /// Of images of bytes.
  std::optional<Transform> transform_ = {};
};

} // namespace lockstep::internal
