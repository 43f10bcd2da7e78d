// SPDX-License-Identifier: BSD-3-Clause
//
// One decoder for each format of images.h.
//
// Note [Parts of images]
// A random crop uses half of a picture on average. Where an augmentation begins
// with one, only that part is decoded, into the bits that it has in the whole:
// JPEG's transform, colours and all rows below are saved, PNG's rows below.
// Damage of a JPEG outside of the part is not noticed; PNG's checksums are
// compared all the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/data/images.h"
#include "lockstep/data/internal/resize_uint8.h"

namespace lockstep::internal {

/// The part that is wanted, inside of the whole; none: all of it.
using ChooseRegion = std::function<Region(const ImageShape& whole)>;

/// That part of what `decode_image` gives, bit for bit.
/// Errors: as `decode_image`, but for damage outside of it.
Image decode_part(
    ByteSpan bytes,
    const std::string& path,
    const DecodeOptions& options,
    const ChooseRegion& choose);

/// The shape of what `decode_image` gives, from the headers.
/// Errors: as `decode_image`, as far as they show there.
ImageShape decoded_shape(
    ByteSpan bytes,
    const std::string& path,
    const DecodeOptions& options);

/// Errors: throws kCorrupt (E_IMAGE).
[[noreturn]] void damaged_image(
    const std::string& path,
    const std::string& reason);

/// Errors: throws kUnsafe for too many pixels, kCorrupt for none.
void check_pixels(const ImageShape& shape, const std::string& path);
/// An image of that shape, not filled. Errors: as `check_pixels`.
Image empty_image(const ImageShape& shape, const std::string& path);

/// `choose` of the whole, all of it without one.
Region chosen_region(const ChooseRegion& choose, const ImageShape& whole);

/// Each gives 1 or 3 channels, whichever the file has.
Image decode_jpeg(
    ByteSpan bytes,
    const std::string& path,
    std::int64_t min_side,
    const ChooseRegion& choose);
Image decode_png(
    ByteSpan bytes,
    const std::string& path,
    const ChooseRegion& choose);
/// The numbers of a mask as they are, whatever colours a palette gives them; of
/// 16 bits those up to 255, and 65535 as 255. One channel.
/// Errors: throws kUnsupported (E_MASK) for anything but a PNG file in grey or
/// with a palette, and for larger numbers; kCorrupt (E_IMAGE).
Image decode_mask(ByteSpan bytes, const std::string& path);
/// Errors: throws kUnsupported for an animation.
Image decode_webp(
    ByteSpan bytes,
    const std::string& path,
    const ChooseRegion& choose);

/// Of all that the file has. Errors: as the decoders', as far as headers show
/// them.
ImageShape
jpeg_shape(ByteSpan bytes, const std::string& path, std::int64_t min_side);
ImageShape png_shape(ByteSpan bytes, const std::string& path);
ImageShape webp_shape(ByteSpan bytes, const std::string& path);

/// EXIF's number of an image that is not to be turned.
inline constexpr int kNotTurned = 1;
/// EXIF's number of how the image is to be turned, 1 to 8; `kNotTurned` where
/// the file does not say it. Source: EXIF 2.3, tag 0x0112; the data lie in
/// JPEG's APP1, PNG's chunk eXIf and WebP's chunk EXIF.
int exif_orientation(ByteSpan file);

} // namespace lockstep::internal
