// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/array_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/check_index.h"
#include "lockstep/data/internal/check_samples.h"
#include "lockstep/data/internal/labels.h"
#include "lockstep/data/internal/turn_mask.h"

namespace lockstep::internal {
namespace {

template <class From, class To>
void convert_from(const std::byte* from, std::int64_t count, To* to) {
  // Not aligned: rows of files begin anywhere.
  for (std::int64_t i = 0; i < count; ++i, from += sizeof(From)) {
    From element{};
    std::memcpy(&element, from, sizeof(From));
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8 is a number here
    to[i] = static_cast<To>(element);
  }
}

// Elements of any real type as numbers of another.
template <class To>
void convert(
    const std::byte* from,
    at::ScalarType type,
    std::int64_t count,
    To* to) {
  switch (type) {
    case at::kByte:
      return convert_from<std::uint8_t>(from, count, to);
    case at::kChar:
      return convert_from<std::int8_t>(from, count, to);
    case at::kShort:
      return convert_from<std::int16_t>(from, count, to);
    case at::kInt:
      return convert_from<std::int32_t>(from, count, to);
    case at::kLong:
      return convert_from<std::int64_t>(from, count, to);
    case at::kUInt16:
      return convert_from<std::uint16_t>(from, count, to);
    case at::kUInt32:
      return convert_from<std::uint32_t>(from, count, to);
    case at::kUInt64:
      return convert_from<std::uint64_t>(from, count, to);
    case at::kBool:
      return convert_from<bool>(from, count, to);
    case at::kHalf:
      return convert_from<at::Half>(from, count, to);
    case at::kBFloat16:
      return convert_from<at::BFloat16>(from, count, to);
    case at::kFloat:
      return convert_from<float>(from, count, to);
    case at::kDouble:
      return convert_from<double>(from, count, to);
    default: // whoever opens arrays refuses other types
      LOCKSTEP_CHECK(false);
  }
}

// [H, W, C] to [C, H, W].
template <class T>
void to_planes(const T* from, const ImageShape& shape, T* to) {
  const std::int64_t pixels = shape.height * shape.width;
  for (std::int64_t i = 0; i < pixels; ++i) {
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      to[c * pixels + i] = from[i * shape.channels + c];
    }
  }
}

std::vector<std::int64_t> shape_of(const ArraySamples& samples) {
  std::vector<std::int64_t> shape = samples.inputs.shape;
  if (shape.size() == 2) {
    return {1, shape[0], shape[1]};
  }
  if (shape.empty()) {
    return {1};
  }
  return samples.is_channels_last ? std::vector{shape[2], shape[0], shape[1]}
                                  : std::move(shape);
}

ImageShape image_shape(const std::vector<std::int64_t>& shape) {
  return {.channels = shape[0], .height = shape[1], .width = shape[2]};
}

bool is_random(const TransformOptions& options) {
  return options.crop_padding > 0 || options.horizontal_flip;
}

std::optional<Transform> transform_of(
    const std::vector<std::int64_t>& shape,
    at::ScalarType type,
    TransformOptions options,
    const std::string& file) {
  const bool is_image = type == at::kByte && shape.size() == 3;
  if (!is_image) {
    if (is_random(options)) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "data.open",
           .message = "samples that are no images of bytes cannot be cropped "
                      "and flipped",
           .hint = "--augment none",
           .path = file,
           .detail = "E_DATA_OPTION"});
    }
    return std::nullopt;
  }
  const auto channels = static_cast<std::size_t>(shape[0]);
  if (options.mean.empty()) {
    options.mean.assign(channels, 0.0F);
  }
  if (options.std.empty()) {
    options.std.assign(channels, 1.0F);
  }
  return Transform(image_shape(shape), std::move(options));
}

} // namespace

std::int64_t ArrayElements::size() const {
  std::int64_t total = 0;
  for (const ArrayRows& part : rows) {
    total += part.count;
  }
  return total;
}

std::int64_t ArrayElements::numel() const {
  return c10::multiply_integers(shape);
}

const std::byte* ArrayElements::row(std::int64_t index) const {
  auto part = rows.begin();
  while (index >= part->count) {
    index -= part->count;
    ++part;
  }
  return part->data + index * part->stride;
}

ArrayElements elements_of(const at::Tensor& tensor) {
  const auto kept = std::make_shared<at::Tensor>(tensor.contiguous());
  const auto sizes = kept->sizes();
  ArrayElements elements{
      .type = kept->scalar_type(),
      .shape = {sizes.begin() + 1, sizes.end()}};
  elements.rows.push_back(
      {.owner = kept,
       .data = static_cast<const std::byte*>(kept->const_data_ptr()),
       .count = sizes[0],
       .stride = elements.numel() * kept->element_size()});
  return elements;
}

std::uint64_t digest_of(const ArrayElements& elements, std::uint64_t hash) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20U;
  constexpr std::int64_t kRuns = 256; // neighbours share pages of a file
  const std::int64_t each = std::max<std::int64_t>(
      1,
      elements.numel() *
          static_cast<std::int64_t>(c10::elementSize(elements.type)));
  const std::int64_t count = elements.size();
  const bool is_whole = count * each <= kBytes;
  const std::int64_t runs = is_whole ? 1 : std::min(kRuns, count);
  const std::int64_t length =
      is_whole ? count : std::max<std::int64_t>(1, kBytes / each / runs);
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t first = run * count / runs;
    for (std::int64_t i = first; i < std::min(first + length, count); ++i) {
      hash = hash_of(elements.row(i), static_cast<std::size_t>(each), hash);
    }
  }
  return hash;
}

void read_integers(
    const ArrayElements& elements,
    std::int64_t index,
    std::span<std::int64_t> to) {
  convert(elements.row(index), elements.type, elements.numel(), to.data());
}

ArrayDataset::ArrayDataset(ArraySamples samples, TransformOptions transform)
    : samples_(std::move(samples)),
      shape_(shape_of(samples_)),
      transform_(transform_of(
          shape_,
          samples_.inputs.type,
          std::move(transform),
          samples_.file)) {}

std::int64_t ArrayDataset::size() const {
  return samples_.inputs.size();
}

std::vector<std::int64_t> ArrayDataset::sample_shape() const {
  return shape_;
}

std::int64_t ArrayDataset::num_classes() const {
  return samples_.num_classes;
}

TargetFormat ArrayDataset::target_format() const {
  return samples_.target;
}

std::vector<std::string> ArrayDataset::class_names() const {
  return samples_.class_names;
}

PixelFormat ArrayDataset::pixel_format() const {
  if (!transform_) {
    return {}; // no pixels
  }
  return {
      .shape = shape_,
      .mean = transform_->options().mean,
      .std = transform_->options().std};
}

std::string ArrayDataset::sample_name(std::int64_t index) const {
  return format("{}, sample {}", samples_.file, index);
}

std::uint64_t ArrayDataset::digest() const {
  const std::vector<std::int64_t>& classes = samples_.classes;
  const std::uint64_t of_inputs =
      digest_of(samples_.inputs, hash_of(nullptr, 0));
  return digest_of(
      samples_.targets,
      hash_of(classes.data(), classes.size() * sizeof(classes[0]), of_inputs));
}

void ArrayDataset::read_target(
    std::int64_t index,
    std::size_t at,
    TargetRows targets) const {
  const auto numel = static_cast<std::size_t>(samples_.target.numel());
  if (samples_.target.kind == TargetKind::kNone) {
    return;
  }
  if (!samples_.classes.empty()) {
    targets.classes[at] = samples_.classes[static_cast<std::size_t>(index)];
    return;
  }
  const std::byte* from = samples_.targets.row(index);
  const auto count = static_cast<std::int64_t>(numel);
  if (samples_.target.kind == TargetKind::kValues) {
    const auto to = targets.values.subspan(at * numel, numel);
    convert(from, samples_.targets.type, count, to.data());
    return;
  }
  const auto to = targets.classes.subspan(at * numel, numel);
  convert(from, samples_.targets.type, count, to.data());
  check_mask(to, samples_.num_classes, sample_name(index), samples_.file);
}

void ArrayDataset::read_targets(
    std::span<const std::int64_t> indices,
    TargetRows targets) const {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    check_index(indices[i], size());
    read_target(indices[i], i, targets);
  }
}

void ArrayDataset::read(
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    std::span<float> images,
    TargetRows targets) const {
  const std::int64_t numel = c10::multiply_integers(shape_);
  std::vector<std::uint8_t> planes;
  std::vector<std::uint8_t> scratch;
  std::vector<float> numbers;
  float* out = images.data();
  read_targets(indices, targets);
  for (const std::int64_t index : indices) {
    const std::byte* from = samples_.inputs.row(index);
    if (transform_) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes
      const auto* pixels = reinterpret_cast<const std::uint8_t*>(from);
      if (samples_.is_channels_last) {
        planes.resize(static_cast<std::size_t>(numel));
        to_planes(pixels, image_shape(shape_), planes.data());
        pixels = planes.data();
      }
      transform_->apply(pixels, index, epoch, scratch, out);
    } else if (samples_.is_channels_last) {
      numbers.resize(static_cast<std::size_t>(numel));
      convert(from, samples_.inputs.type, numel, numbers.data());
      to_planes(numbers.data(), image_shape(shape_), out);
    } else {
      convert(from, samples_.inputs.type, numel, out);
    }
    out += numel;
  }
  if (!transform_) {
    check_finite(*this, indices, images, "input");
  }
  check_finite(*this, indices, targets.values, "target");
  if (transform_ && samples_.target.shape.size() == 2) {
    turn_masks(
        transform_->options(),
        indices,
        epoch,
        samples_.target,
        num_classes(),
        targets);
  }
}

} // namespace lockstep::internal
