// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/resized_dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

ImageShape shape_of(const Dataset& source) {
  const std::vector<std::int64_t> shape = source.sample_shape();
  if (shape.size() != 3) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.resize",
         .message = format(
             "only images can be resized; expected samples of 3 dimensions "
             "(channels, height, width), got {}",
             shape.size()),
         .detail = "E_IMAGE_SIZE"});
  }
  return {.channels = shape[0], .height = shape[1], .width = shape[2]};
}

} // namespace

ResizedDataset::ResizedDataset(
    std::shared_ptr<const Dataset> source,
    std::int64_t height,
    std::int64_t width)
    : source_(std::move(source)), resize_(shape_of(*source_), height, width) {
  if (source_->target_format().kind == TargetKind::kStructure) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.resize",
         .message = "images whose targets are of a program's own type cannot "
                    "be resized: the targets would not follow",
         .hint = "give them in the size that the model takes",
         .detail = "E_IMAGE_SIZE"});
  }
}

std::int64_t ResizedDataset::size() const {
  return source_->size();
}

std::vector<std::int64_t> ResizedDataset::sample_shape() const {
  const ImageShape& shape = resize_.to();
  return {shape.channels, shape.height, shape.width};
}

std::int64_t ResizedDataset::num_classes() const {
  return source_->num_classes();
}

bool ResizedDataset::has_masks() const {
  const TargetFormat format = source_->target_format();
  const ImageShape& from = resize_.from();
  return format.kind == TargetKind::kClasses &&
         format.shape == std::vector{from.height, from.width};
}

TargetFormat ResizedDataset::target_format() const {
  TargetFormat format = source_->target_format();
  if (has_masks()) {
    format.shape = {resize_.to().height, resize_.to().width};
  }
  return format;
}

std::vector<std::string> ResizedDataset::class_names() const {
  return source_->class_names();
}

PixelFormat ResizedDataset::pixel_format() const {
  return source_->pixel_format();
}

std::string ResizedDataset::sample_name(std::int64_t index) const {
  return source_->sample_name(index);
}

std::uint64_t ResizedDataset::digest() const {
  return source_->digest();
}

void ResizedDataset::resize_masks(
    std::span<const std::int64_t> originals,
    std::span<std::int64_t> masks) const {
  const ImageShape& from = resize_.from();
  const ImageShape& to = resize_.to();
  // As at::upsample_nearest2d finds its source: in float.
  const auto source = [](std::int64_t i,
                         std::int64_t before,
                         std::int64_t now) {
    const float scale = static_cast<float>(before) / static_cast<float>(now);
    const auto place = std::floor(static_cast<float>(i) * scale);
    return std::min(static_cast<std::int64_t>(place), before - 1);
  };
  const std::int64_t count = std::ssize(originals) / (from.height * from.width);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t y = 0; y < to.height; ++y) {
      const std::int64_t row =
          i * from.height + source(y, from.height, to.height);
      for (std::int64_t x = 0; x < to.width; ++x) {
        const std::int64_t place =
            row * from.width + source(x, from.width, to.width);
        masks[at++] = originals[static_cast<std::size_t>(place)];
      }
    }
  }
}

void ResizedDataset::read(
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    std::span<float> images,
    TargetRows targets) const {
  const std::int64_t from = resize_.from().numel();
  const std::int64_t to = resize_.to().numel();
  std::vector<float> originals(indices.size() * static_cast<std::size_t>(from));
  if (has_masks()) {
    const std::int64_t numel = source_->target_format().numel();
    std::vector<std::int64_t> masks(
        indices.size() * static_cast<std::size_t>(numel));
    source_->read(indices, epoch, originals, masks);
    resize_masks(masks, targets.classes);
  } else {
    source_->read(indices, epoch, originals, targets);
  }
  for (std::int64_t i = 0; i < std::ssize(indices); ++i) {
    resize_.apply(originals.data() + i * from, images.data() + i * to);
  }
}

} // namespace lockstep
