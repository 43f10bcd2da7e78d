// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/file_dataset.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/check_index.h"
#include "lockstep/data/internal/file_digest.h"
#include "lockstep/data/internal/image_decoders.h"
#include "lockstep/data/internal/image_options.h"
#include "lockstep/data/internal/labels.h"
#include "lockstep/data/internal/pixel_cache.h"
#include "lockstep/data/internal/resize_uint8.h"
#include "lockstep/data/internal/turn_mask.h"

namespace lockstep::internal {
namespace {

// A mask fits its image pixel by pixel, so the image is decoded whole.
ImageFolderOptions options_for(ImageFolderOptions options, bool has_masks) {
  options = checked_images(std::move(options));
  if (has_masks) {
    options.decode.min_side = 0;
  }
  return options;
}

template <class T>
std::vector<T> chosen(
    const std::vector<T>& all,
    std::span<const std::int64_t> indices,
    std::int64_t each = 1) {
  std::vector<T> some;
  if (all.empty()) {
    return some;
  }
  some.reserve(indices.size() * static_cast<std::size_t>(each));
  for (const std::int64_t index : indices) {
    const auto first = all.begin() + index * each;
    some.insert(some.end(), first, first + each);
  }
  return some;
}

} // namespace

FileSamples FileSamples::part(std::span<const std::int64_t> indices) const {
  return {
      .images = chosen(images, indices),
      .masks = chosen(masks, indices),
      .classes = chosen(classes, indices),
      .values = chosen(values, indices, values_each),
      .num_classes = num_classes,
      .names = names,
      .values_each = values_each,
      .is_255_one = is_255_one};
}

FileDataset::FileDataset(FileSamples samples, ImageFolderOptions options)
    : samples_(std::move(samples)),
      options_(options_for(std::move(options), has_masks())),
      transform_(
          {.channels = options_.decode.channels,
           .height = options_.size,
           .width = options_.size},
          options_.transform) {
  if (options_.skip_bad_images) {
    take_out_bad();
  }
  pictures_ = make_reader(options_.cache);
}

std::shared_ptr<const PictureReader> FileDataset::make_reader(
    ImageCache cache) const {
  PictureOptions options{
      .images = options_,
      .has_masks = has_masks(),
      .is_255_one = samples_.is_255_one};
  options.images.cache = cache;
  return std::make_shared<PictureReader>(
      std::move(options),
      size(),
      [this](std::int64_t i) { return files_of(i); });
}

PictureFiles FileDataset::files_of(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  return {
      .image = &samples_.images[at],
      .mask = has_masks() ? &samples_.masks[at] : nullptr};
}

void FileDataset::take_out_bad() {
  const auto reader = make_reader(ImageCache::kNone);
  const auto errors = image_errors(size(), [&](std::int64_t i) {
    (void)reader->decoded(files_of(i));
  });
  std::vector<std::int64_t> good;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (const auto& error = errors[i]) {
      bad_files_.push_back(*error);
    } else {
      good.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (!bad_files_.empty()) {
    samples_ = samples_.part(good);
  }
}

std::int64_t FileDataset::size() const {
  return std::ssize(samples_.images);
}

std::vector<std::int64_t> FileDataset::sample_shape() const {
  return {options_.decode.channels, options_.size, options_.size};
}

std::int64_t FileDataset::num_classes() const {
  return samples_.num_classes;
}

TargetFormat FileDataset::target_format() const {
  if (has_masks()) {
    return {
        .kind = TargetKind::kClasses,
        .shape = {options_.size, options_.size}};
  }
  if (samples_.values_each > 0) {
    return {.kind = TargetKind::kValues, .shape = {samples_.values_each}};
  }
  return {.kind = TargetKind::kClasses};
}

std::vector<std::string> FileDataset::class_names() const {
  return samples_.names;
}

PixelFormat FileDataset::pixel_format() const {
  return {
      .shape = sample_shape(),
      .mean = transform_.options().mean,
      .std = transform_.options().std};
}

std::string FileDataset::sample_name(std::int64_t index) const {
  check_index(index, size());
  return samples_.images[static_cast<std::size_t>(index)];
}

void FileDataset::visit_paths(
    std::int64_t index,
    const std::function<void(const std::string& path)>& visit) const {
  const auto at = static_cast<std::size_t>(index);
  visit(samples_.images[at]);
  if (has_masks()) {
    visit(samples_.masks[at]);
  }
}

std::uint64_t FileDataset::digest() const {
  const std::vector<std::int64_t>& classes = samples_.classes;
  const std::vector<float>& values = samples_.values;
  std::uint64_t digest = digest_of_files(
      size(),
      [this](std::int64_t i, const auto& visit) { visit_paths(i, visit); },
      files());
  digest =
      hash_of(classes.data(), classes.size() * sizeof(std::int64_t), digest);
  return hash_of(values.data(), values.size() * sizeof(float), digest);
}

void FileDataset::put_target(
    std::int64_t index,
    std::size_t at,
    const std::uint8_t* mask,
    TargetRows targets) const {
  const auto number = static_cast<std::size_t>(index);
  if (samples_.values_each > 0) {
    const auto each = static_cast<std::size_t>(samples_.values_each);
    std::copy_n(
        &samples_.values[number * each],
        each,
        targets.values.begin() + static_cast<std::ptrdiff_t>(at * each));
    return;
  }
  if (!has_masks()) {
    targets.classes[at] = samples_.classes[number];
    return;
  }
  const auto numel = static_cast<std::size_t>(options_.size * options_.size);
  const auto to = targets.classes.subspan(at * numel, numel);
  std::copy_n(mask, numel, to.begin());
  check_mask(
      to,
      samples_.num_classes,
      samples_.images[number],
      samples_.masks[number]);
}

void FileDataset::read_targets(
    std::span<const std::int64_t> indices,
    TargetRows targets) const {
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t index = indices[i];
    check_index(index, size());
    const std::uint8_t* mask = nullptr;
    if (has_masks()) {
      mask = pictures_->read(index, files_of(index), {}, pixels) +
             transform_.shape().numel();
    }
    put_target(index, i, mask, targets);
  }
}

void FileDataset::read(
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    std::span<float> images,
    TargetRows targets) const {
  const std::int64_t numel = transform_.shape().numel();
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> scratch;
  float* out = images.data();
  for (std::size_t i = 0; i < indices.size(); ++i, out += numel) {
    const std::int64_t index = indices[i];
    check_index(index, size());
    const std::uint8_t* image =
        pictures_->read(index, files_of(index), epoch, pixels);
    transform_.apply(image, index, epoch, scratch, out);
    put_target(index, i, image + numel, targets);
  }
  if (has_masks()) {
    turn_masks(
        transform_.options(),
        indices,
        epoch,
        target_format(),
        num_classes(),
        targets);
  }
}

} // namespace lockstep::internal
