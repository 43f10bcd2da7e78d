// SPDX-License-Identifier: BSD-3-Clause
//
// One decoder for each format of image_file.h.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/data/image_file.h"

namespace lockstep::internal {

/// Errors: throws kCorrupt (E_IMAGE).
[[noreturn]] void damaged_image(
    const std::string& path,
    const std::string& reason);

/// An image of that shape, not filled.
/// Errors: throws kUnsafe for too many pixels, kCorrupt for none.
Image empty_image(const ImageShape& shape, const std::string& path);

/// Each gives 1 or 3 channels, whichever the file has.
Image decode_jpeg(
    ByteSpan bytes,
    const std::string& path,
    std::int64_t min_side);
Image decode_png(ByteSpan bytes, const std::string& path);
/// The numbers of a mask as they are, whatever colours a palette gives them; of
/// 16 bits those up to 255, and 65535 as 255. One channel.
/// Errors: throws kUnsupported (E_MASK) for anything but a PNG file in grey or
/// with a palette, and for larger numbers; kCorrupt (E_IMAGE).
Image decode_mask(ByteSpan bytes, const std::string& path);
/// Errors: throws kUnsupported for an animation.
Image decode_webp(ByteSpan bytes, const std::string& path);

/// EXIF's number of how the image is to be turned, 1 to 8; 1, as it is, where
/// the file does not say it. Source: EXIF 2.3, tag 0x0112; the data lie in
/// JPEG's APP1, PNG's chunk eXIf and WebP's chunk EXIF.
int exif_orientation(ByteSpan file);

} // namespace lockstep::internal
