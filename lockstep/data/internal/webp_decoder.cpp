// SPDX-License-Identifier: BSD-3-Clause
#include <webp/decode.h>

#include "lockstep/base/error.h"
#include "lockstep/data/internal/image_decoders.h"
#include "lockstep/data/internal/image_geometry.h"

namespace lockstep::internal {
namespace {

const std::uint8_t* webp_bytes(ByteSpan bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): raw bytes
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

} // namespace

ImageShape webp_shape(ByteSpan bytes, const std::string& path) {
  WebPBitstreamFeatures features = {};
  if (WebPGetFeatures(webp_bytes(bytes), bytes.size(), &features) !=
      VP8_STATUS_OK) {
    damaged_image(path, "its header cannot be read");
  }
  if (features.has_animation != 0) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "data.image",
         .message = "the file is an animation",
         .hint = "write its pictures to files of their own",
         .path = path,
         .detail = "E_IMAGE_FORMAT"});
  }
  return {.channels = 3, .height = features.height, .width = features.width};
}

Image decode_webp(
    ByteSpan bytes,
    const std::string& path,
    const ChooseRegion& choose) {
  Image image = empty_image(webp_shape(bytes, path), path);
  if (WebPDecodeRGBInto(
          webp_bytes(bytes),
          bytes.size(),
          image.pixels.data(),
          image.pixels.size(),
          static_cast<int>(3 * image.shape.width)) == nullptr) {
    damaged_image(path, "its pixels cannot be decoded");
  }
  return choose ? cropped(image, choose(image.shape), 0) : image;
}

} // namespace lockstep::internal
