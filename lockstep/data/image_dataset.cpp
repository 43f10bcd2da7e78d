// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/check_index.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep {
namespace {

void bad_argument(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.read",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

std::span<const std::uint8_t> view(const SharedBytes& bytes) {
  return {bytes.data.get(), static_cast<std::size_t>(bytes.size)};
}

} // namespace

ImageDataset::ImageDataset(
    LabelledImages images,
    const TransformOptions& transform)
    : images_(std::move(images)), transform_(images_.shape, transform) {
  const auto numel = static_cast<std::uint64_t>(images_.shape.numel());
  if (images_.pixels.size != images_.labels.size * numel) {
    bad_argument(format(
        "pixels and labels do not fit; expected {} x {} bytes, got {}",
        images_.labels.size,
        numel,
        images_.pixels.size));
  }
  const auto labels = view(images_.labels);
  const auto largest = std::ranges::max_element(labels);
  if (largest != labels.end() && *largest >= images_.num_classes) {
    bad_argument(format(
        "label of sample {} is not a class; expected 0 to {}, got {}",
        largest - labels.begin(),
        images_.num_classes - 1,
        *largest));
  }
}

std::int64_t ImageDataset::size() const {
  return static_cast<std::int64_t>(images_.labels.size);
}

std::vector<std::int64_t> ImageDataset::sample_shape() const {
  const ImageShape& shape = images_.shape;
  return {shape.channels, shape.height, shape.width};
}

std::int64_t ImageDataset::num_classes() const {
  return images_.num_classes;
}

PixelFormat ImageDataset::pixel_format() const {
  return {
      .shape = sample_shape(),
      .mean = transform_.options().mean,
      .std = transform_.options().std};
}

std::uint64_t ImageDataset::digest() const {
  const SharedBytes& pixels = images_.pixels;
  const SharedBytes& labels = images_.labels;
  return internal::hash_of(
      labels.data.get(),
      static_cast<std::size_t>(labels.size),
      internal::hash_of(
          pixels.data.get(),
          static_cast<std::size_t>(pixels.size)));
}

void ImageDataset::read_targets(
    std::span<const std::int64_t> indices,
    TargetRows targets) const {
  const auto labels = view(images_.labels);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    internal::check_index(indices[i], size());
    targets.classes[i] = labels[static_cast<std::size_t>(indices[i])];
  }
}

void ImageDataset::read(
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    std::span<float> images,
    TargetRows targets) const {
  read_targets(indices, targets);
  transform_.gather(view(images_.pixels), indices, epoch, images);
}

} // namespace lockstep
