// SPDX-License-Identifier: BSD-3-Clause
//
// Pixels of image files: JPEG, PNG and WebP, told apart by their bytes.
//   const Image image = read_image("cat.jpg");
//   image.shape.height; image.pixels[0]; // red of the first pixel
//
// From pixels to network input, in one pass: random crop with padding, random
// horizontal flip (both on raw pixels, in this order, as torchvision's
// RandomCrop and RandomHorizontalFlip), then x/255, minus mean, over std.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"

#pragma GCC visibility push(default)
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

/// Pixels in memory.
struct Image {
  ImageShape shape = {};
  /// Shape: [H, W, C] uint8, row-major.
  std::vector<std::uint8_t> pixels = {};
};

/// What an image becomes when it is read.
struct DecodeOptions {
  /// 3: red, green and blue; 1: grey, (19595 R + 38470 G + 7471 B) / 65536
  /// rounded, as Pillow's `convert("L")`. What a file has beside them is left
  /// out: alpha, and of 16 bits the lower 8.
  std::int64_t channels = 3;
  /// Turns and mirrors the image as its EXIF data say, as Pillow's
  /// `ImageOps.exif_transpose`. torchvision's loaders do not.
  bool orient = true;
  /// A JPEG file is decoded at a half, a quarter or an eighth of its size where
  /// both sides keep as many pixels: fast, for images that are made smaller
  /// anyway. 0: at its size.
  std::int64_t min_side = 0;
};

/// Units: pixels of one image, more are refused: what Pillow refuses, too.
inline constexpr std::int64_t kMaxImagePixels = 178'956'970;

/// Decodes an image. `path` is for messages only.
/// Threads: safe to call from several threads.
/// Errors: throws kUnsupported (E_IMAGE_FORMAT) for other formats and for
/// animations, kCorrupt (E_IMAGE) for a damaged file, kUnsafe (E_IMAGE_PIXELS)
/// for one with more than `kMaxImagePixels`, kInvalidArgument for a number of
/// channels that is neither 1 nor 3.
Image decode_image(
    ByteSpan bytes,
    const std::string& path,
    const DecodeOptions& options = {});

/// The same for a file. Errors: kNotFound and kIo, too.
Image read_image(
    const std::string& path,
    const DecodeOptions& options = {},
    FileSystem& fs = real_fs());

/// True if an image of this name may be a file that `read_image` reads: .jpg,
/// .jpeg, .png, .webp, in small or capital letters.
bool has_image_ending(std::string_view name);

} // namespace lockstep
#pragma GCC visibility pop
