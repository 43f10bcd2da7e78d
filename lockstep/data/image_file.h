// SPDX-License-Identifier: BSD-3-Clause
//
// Pixels of image files: JPEG, PNG and WebP, told apart by their bytes.
//   const Image image = read_image("cat.jpg");
//   image.shape.height; image.pixels[0]; // red of the first pixel
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

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
