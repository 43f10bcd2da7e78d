// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <memory>

#include <turbojpeg.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/internal/image_decoders.h"

namespace lockstep::internal {
namespace {

struct Destroy {
  void operator()(void* handle) const {
    tjDestroy(handle);
  }
};
using Handle = std::unique_ptr<void, Destroy>;

// libjpeg-turbo's state is kept for the next image of this thread.
tjhandle decoder() {
  thread_local const Handle handle(tjInitDecompress());
  return handle.get();
}

// What a decoder warns of is looked over, as Pillow does, but for pixels that
// are not there.
bool lacks_pixels(const std::string& warning) {
  return lower_case(warning).find("premature end") != std::string::npos;
}

// The smallest of 1/8, 1/4, 1/2 and 1 whose sides have `min_side` pixels.
tjscalingfactor scale_for(int width, int height, std::int64_t min_side) {
  for (const int denominator : {8, 4, 2}) {
    const tjscalingfactor factor{1, denominator};
    if (min_side > 0 && TJSCALED(width, factor) >= min_side &&
        TJSCALED(height, factor) >= min_side) {
      return factor;
    }
  }
  return {1, 1};
}

// Adobe's inverted CMYK to RGB, as Pillow does it.
Image from_cmyk(const Image& image) {
  Image rgb{.shape = image.shape};
  rgb.shape.channels = 3;
  rgb.pixels.reserve(image.pixels.size() / 4 * 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 4) {
    const unsigned black = image.pixels[i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = (255U - image.pixels[i + c]) * black + 128U;
      rgb.pixels.push_back(
          static_cast<std::uint8_t>(black - (((product >> 8) + product) >> 8)));
    }
  }
  return rgb;
}

struct Layout {
  int format = TJPF_RGB;
  std::int64_t channels = 3;
};

Layout layout_of(int colorspace) {
  if (colorspace == TJCS_GRAY) {
    return {TJPF_GRAY, 1};
  }
  const bool is_cmyk = colorspace == TJCS_CMYK || colorspace == TJCS_YCCK;
  return is_cmyk ? Layout{TJPF_CMYK, 4} : Layout{};
}

} // namespace

Image decode_jpeg(
    ByteSpan bytes,
    const std::string& path,
    std::int64_t min_side) {
  const tjhandle handle = decoder();
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): raw bytes
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colorspace = 0;
  if (tjDecompressHeader3(
          handle,
          data,
          bytes.size(),
          &width,
          &height,
          &subsampling,
          &colorspace) != 0) {
    damaged_image(path, tjGetErrorStr2(handle));
  }
  const tjscalingfactor factor = scale_for(width, height, min_side);
  const Layout layout = layout_of(colorspace);
  Image image = empty_image(
      {.channels = layout.channels,
       .height = TJSCALED(height, factor),
       .width = TJSCALED(width, factor)},
      path);
  const int status = tjDecompress2(
      handle,
      data,
      bytes.size(),
      image.pixels.data(),
      static_cast<int>(image.shape.width),
      /*pitch=*/0,
      static_cast<int>(image.shape.height),
      layout.format,
      /*flags=*/0);
  if (status != 0) {
    const std::string reason = tjGetErrorStr2(handle);
    if (tjGetErrorCode(handle) != TJERR_WARNING || lacks_pixels(reason)) {
      damaged_image(path, reason);
    }
  }
  return layout.channels == 4 ? from_cmyk(image) : image;
}

} // namespace lockstep::internal
