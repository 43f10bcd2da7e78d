// SPDX-License-Identifier: BSD-3-Clause
//
// From stored pixels to network input, in one pass: random crop with padding,
// random horizontal flip (both on raw pixels, in this order, as torchvision's
// RandomCrop and RandomHorizontalFlip), then x/255, minus mean, over std.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Pixels of one channel to floats, (x / 255 - mean) / std with a rounding
/// after each step, as three PyTorch operators do it. Two ways with the same
/// bits: a table of all 256 results, and AVX2 with FMA, which divides without a
/// division. Whether that rounds as the table does is found out for all 256
/// pixels when one is made.
/// Threads: safe to use from several threads.
class Normaliser {
 public:
  /// Both are of pixels in [0, 1].
  Normaliser(float mean, float std);

  /// Writes `pixels.size()` floats to `out`, the fastest way this CPU has.
  void apply(std::span<const std::uint8_t> pixels, float* out) const;
  /// The same by table lookup.
  void apply_table(std::span<const std::uint8_t> pixels, float* out) const;

  /// True if `apply` uses AVX2 and FMA.
  [[nodiscard]] bool is_vectorised() const noexcept {
    return is_vectorised_;
  }

 private:
  float mean_;
  float std_;
  bool is_vectorised_ = false;
  std::array<float, 256> table_ = {};
};

/// Size of one image.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;

  /// Units: pixels times channels.
  [[nodiscard]] std::int64_t numel() const {
    return channels * height * width;
  }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

/// How pixels become network input. Default: only normalised.
struct TransformOptions {
  /// Pixels of zeros around the image before a crop of the image's size is
  /// taken at a random place; 0 switches the crop off.
  std::int64_t crop_padding = 0;
  /// Mirrors every second image, chosen at random.
  bool horizontal_flip = false;
  /// Seed of crop and flip; also decided by them: epoch and sample index.
  std::int64_t seed = 0;
  /// One per channel, of pixels in [0, 1]; empty: those of the dataset.
  std::vector<float> mean = {};
  std::vector<float> std = {};

  friend bool operator==(const TransformOptions&, const TransformOptions&) =
      default;
};

/// What the random transforms do to one image in one epoch.
struct Augmentation {
  /// Where the crop starts in the padded image, 0 to 2 * padding.
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool flip = false;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// The choice for sample `index` in `epoch`: words 0, 1 and 2 of the Philox
/// block whose key is the seed and whose counter is (index, epoch), all low
/// word first. Word 0 scales to `top`, word 1 to `left`, bit 31 of word 2 is
/// `flip`. A transform that is off leaves its part as if nothing was moved.
Augmentation augmentation(
    const TransformOptions& options,
    std::int64_t epoch,
    std::int64_t index);

/// Applies `TransformOptions` to images of one shape.
/// Threads: `gather` may run in several threads at once.
class Transform {
 public:
  /// Errors: throws kInvalidArgument if `mean` and `std` do not have one value
  /// per channel, one is not finite or a std is 0, or the padding is negative
  /// or above 1024.
  Transform(const ImageShape& shape, TransformOptions options);

  /// Writes the images `indices` of `pixels` (all images, one after the other,
  /// each channels x height x width) to `out`, bit-equal to PyTorch's
  /// `(x.float() / 255 - mean) / std`.
  /// Units: `out` has indices.size() * shape().numel() elements.
  void gather(
      std::span<const std::uint8_t> pixels,
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> out) const;

  /// The same for one image, sample `index`. `scratch` is made as large as it
  /// needs; one for each thread.
  /// Shape: `image` [C, H, W], `out` the same.
  void apply(
      const std::uint8_t* image,
      std::int64_t index,
      std::int64_t epoch,
      std::vector<std::uint8_t>& scratch,
      float* out) const;

  [[nodiscard]] const ImageShape& shape() const {
    return shape_;
  }
  [[nodiscard]] const TransformOptions& options() const {
    return options_;
  }

 private:
  void normalise(const std::uint8_t* image, float* out) const;

  ImageShape shape_;
  TransformOptions options_;
  std::vector<Normaliser> channels_;
};

} // namespace lockstep
