// SPDX-License-Identifier: BSD-3-Clause
#include <webp/decode.h>

#include "lockstep/base/error.h"
#include "lockstep/data/internal/image_decoders.h"

namespace lockstep::internal {

Image decode_webp(ByteSpan bytes, const std::string& path) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): raw bytes
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features = {};
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
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
  Image image = empty_image(
      {.channels = 3, .height = features.height, .width = features.width},
      path);
  if (WebPDecodeRGBInto(
          data,
          bytes.size(),
          image.pixels.data(),
          image.pixels.size(),
          3 * features.width) == nullptr) {
    damaged_image(path, "its pixels cannot be decoded");
  }
  return image;
}

} // namespace lockstep::internal
