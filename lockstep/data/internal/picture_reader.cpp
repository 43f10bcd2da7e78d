// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/picture_reader.h"

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/uncounted.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/internal/image_decoders.h"
#include "lockstep/data/internal/image_geometry.h"
#include "lockstep/data/internal/image_options.h"
#include "lockstep/data/internal/resize_uint8.h"

namespace lockstep::internal {
namespace {

void append(
    std::vector<std::uint8_t>& bytes,
    const std::optional<Image>& mask) {
  if (mask) {
    bytes.insert(bytes.end(), mask->pixels.begin(), mask->pixels.end());
  }
}

std::string recipe(const PictureOptions& options, bool keeps_decoded) {
  return format(
      "{}{}{}{}",
      recipe_of(options.images),
      options.has_masks ? " and mask" : "",
      options.is_255_one ? " with 255 as 1" : "",
      keeps_decoded ? " as decoded" : "");
}

void check_mask_size(
    const ImageShape& mask,
    const ImageShape& image,
    const PictureFiles& files) {
  if (mask.height != image.height || mask.width != image.width) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "data.mask",
         .message = format(
             "the mask has {} x {} pixels, its image {} has {} x {}",
             mask.width,
             mask.height,
             *files.image,
             image.width,
             image.height),
         .path = *files.mask,
         .detail = "E_MASK_SIZE"});
  }
}

// Whether the mask is one of the picture as its EXIF data turn it. Its size
// tells; where both have it, that is assumed, and said.
bool turns_with(
    const ImageShape& mask,
    ByteSpan image,
    const PictureFiles& files) {
  if (exif_orientation(image) == kNotTurned) {
    return true;
  }
  const auto fits = [&](bool orient) {
    const ImageShape shape =
        decoded_shape(image, *files.image, {.orient = orient});
    return shape.height == mask.height && shape.width == mask.width;
  };
  const bool is_ambiguous = fits(true) && fits(false);
  if (is_ambiguous) {
    TORCH_WARN_ONCE(format(
        "{} is turned as its EXIF data say; its mask is taken to be one of the "
        "turned picture, which its size does not tell. Masks of pictures as "
        "the files have them need pictures without such data",
        *files.image));
  }
  return is_ambiguous || !fits(false);
}

// The region of pixels that lie in a row, without a copy of the rest.
Image part_of(
    const std::uint8_t* pixels,
    const ImageShape& shape,
    const Region& region) {
  Image part{
      .shape = {
          .channels = shape.channels,
          .height = region.height,
          .width = region.width}};
  part.pixels.resize(static_cast<std::size_t>(part.shape.numel()));
  std::uint8_t* out = part.pixels.data();
  for (std::int64_t y = 0; y < region.height; ++y) {
    const std::int64_t first = (region.top + y) * shape.width + region.left;
    out = std::copy_n(
        pixels + first * shape.channels,
        region.width * shape.channels,
        out);
  }
  return part;
}

} // namespace

PictureReader::PictureReader(
    PictureOptions options,
    std::int64_t count,
    const FilesOf& files)
    : options_(std::move(options)), augmenter_(augmenter_for(options_.images)) {
  if (keeps_decoded()) {
    measure(count, files);
  }
  std::vector<std::uint64_t> sizes;
  if (options_.images.cache != ImageCache::kNone) {
    sizes.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      sizes.push_back(kept_bytes(static_cast<std::size_t>(i)));
    }
  }
  cache_ = make_pixel_cache(
      options_.images.cache,
      options_.images.cache_folder,
      {.sizes = std::move(sizes),
       .paths =
           [&](std::int64_t i, const auto& visit) {
             const PictureFiles found = files(i);
             visit(*found.image);
             if (found.mask != nullptr) {
               visit(*found.mask);
             }
           },
       .recipe = recipe(options_, keeps_decoded())},
      fs());
}

void PictureReader::measure(std::int64_t count, const FilesOf& files) {
  shapes_.resize(static_cast<std::size_t>(count));
  for_each_sample(count, [&](std::int64_t i) {
    try {
      shapes_[static_cast<std::size_t>(i)] = shape_of(files(i));
    } catch (const Exception&) {
      // Whoever reads the picture is told what is wrong with it.
      shapes_[static_cast<std::size_t>(i)] = {};
    }
  });
}

ImageShape PictureReader::shape_of(const PictureFiles& files) const {
  const auto image = fs().map(*files.image).value();
  ImageShape shape =
      decoded_shape(image->bytes(), *files.image, options_.images.decode);
  if (files.mask != nullptr) {
    const auto mask = fs().map(*files.mask).value();
    const ImageShape size = png_shape(mask->bytes(), *files.mask);
    if (size.height == shape.width && size.width == shape.height) {
      std::swap(shape.height, shape.width); // not turned: `turns_with`
    }
  }
  return shape;
}

std::uint64_t PictureReader::kept_bytes(std::size_t index) const {
  const std::int64_t size = options_.images.size;
  const ImageShape shape =
      keeps_decoded() ? shapes_[index]
                      : ImageShape{
                            .channels = options_.images.decode.channels,
                            .height = size,
                            .width = size};
  const std::int64_t planes = shape.channels + (options_.has_masks ? 1 : 0);
  return static_cast<std::uint64_t>(planes * shape.height * shape.width);
}

Image PictureReader::decoded_mask(const std::string& path) const {
  const std::string bytes = read_text(fs(), path).value();
  Image mask = decode_mask(as_byte_span(bytes), path);
  if (options_.is_255_one) { // not what the augmentation fills in
    std::ranges::replace(
        mask.pixels,
        std::uint8_t{kUncountedPixel},
        std::uint8_t{1});
  }
  return mask;
}

AnnotatedImage PictureReader::decoded(
    const PictureFiles& files,
    const ChooseRegion& choose) const {
  const std::string text = read_text(fs(), *files.image).value();
  const ByteSpan bytes = as_byte_span(text);
  DecodeOptions decode = options_.images.decode;
  std::optional<Image> mask;
  if (files.mask != nullptr) {
    mask = decoded_mask(*files.mask);
    decode.orient = decode.orient && turns_with(mask->shape, bytes, files);
  }
  ImageShape whole;
  Region part;
  const auto choose_part = [&](const ImageShape& shape) {
    whole = shape;
    part = choose(shape);
    return part;
  };
  AnnotatedImage sample{
      .image = decode_part(
          bytes,
          *files.image,
          decode,
          choose ? ChooseRegion(choose_part) : ChooseRegion())};
  if (mask) {
    check_mask_size(mask->shape, choose ? whole : sample.image.shape, files);
    sample.mask = choose ? part_of(mask->pixels.data(), mask->shape, part)
                         : std::move(*mask);
  }
  return sample;
}

std::vector<std::uint8_t> PictureReader::kept(
    const PictureFiles& files,
    const ImageShape& shape) const {
  AnnotatedImage sample = decoded(files);
  const ImageShape& found = sample.image.shape;
  if (found != shape) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "data.cache",
         .message = format(
             "the image has {} x {} pixels, and had {} x {} when the data were "
             "opened",
             found.width,
             found.height,
             shape.width,
             shape.height),
         .hint = "do not change the files while a run reads them",
         .path = *files.image,
         .detail = "E_IMAGE_CHANGED"});
  }
  std::vector<std::uint8_t> bytes = std::move(sample.image.pixels);
  append(bytes, sample.mask);
  return bytes;
}

AnnotatedImage PictureReader::kept_sample(
    std::int64_t index,
    const PictureFiles& files,
    const ChooseRegion& choose) const {
  const ImageShape& shape = shapes_[static_cast<std::size_t>(index)];
  if (shape.numel() == 0) {
    return decoded(files, choose); // its head could not be read
  }
  std::vector<std::uint8_t> scratch;
  const std::uint8_t* const pixels = cache_->get(
      index,
      [&] { return kept(files, shape); },
      scratch);
  const Region region = chosen_region(choose, shape);
  AnnotatedImage sample{.image = part_of(pixels, shape, region)};
  if (options_.has_masks) {
    ImageShape mask = shape;
    mask.channels = 1;
    sample.mask = part_of(pixels + shape.numel(), mask, region);
  }
  return sample;
}

AnnotatedImage PictureReader::augmented(
    std::int64_t index,
    const PictureFiles& files,
    const AugmentPlan& plan,
    std::int64_t epoch) const {
  if (!plan.begins_with_crop()) {
    return plan.apply(
        keeps_decoded() ? kept_sample(index, files, {}) : decoded(files),
        epoch,
        index);
  }
  const auto choose = [&](const ImageShape& whole) {
    return plan.first_crop(whole, epoch, index);
  };
  return plan.apply_to_crop(
      keeps_decoded() ? kept_sample(index, files, choose)
                      : decoded(files, choose),
      epoch,
      index);
}

std::vector<std::uint8_t> PictureReader::plain(AnnotatedImage sample) const {
  const std::int64_t size = options_.images.size;
  std::vector<std::uint8_t> planes = fitted_planes(sample.image, size, size);
  if (sample.mask) {
    append(planes, fitted_mask(*sample.mask, size));
  }
  return planes;
}

const std::uint8_t* PictureReader::read(
    std::int64_t index,
    const PictureFiles& files,
    std::optional<std::int64_t> epoch,
    std::vector<std::uint8_t>& scratch) const {
  if (augmenter_ && epoch) {
    const AnnotatedImage sample =
        augmented(index, files, augmenter_->plan(), *epoch);
    scratch = planes_of(sample.image);
    append(scratch, sample.mask);
    return scratch.data();
  }
  if (keeps_decoded()) {
    scratch = plain(kept_sample(index, files, {}));
    return scratch.data();
  }
  return cache_->get(
      index,
      [&] { return plain(decoded(files)); },
      scratch);
}

} // namespace lockstep::internal
