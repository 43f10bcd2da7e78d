// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <utility>

#include "cli_train/eval_files.h"
#include "lockstep/data/internal/class_color.h"
#include "lockstep/data/internal/sample_picture.h"
#include "lockstep/train/inference/outputs.h"

namespace lockstep::cli_train {
namespace {

constexpr std::int64_t kInRow = 5;
// Units: pixels, between pictures and around them.
constexpr std::int64_t kGap = 4;
constexpr std::int64_t kSmallest = 96;
constexpr std::uint8_t kBackground = 128;

using internal::Color;

Image empty_sheet(std::int64_t height, std::int64_t width) {
  Image sheet{.shape = {.channels = 3, .height = height, .width = width}};
  sheet.pixels.assign(
      static_cast<std::size_t>(sheet.shape.numel()),
      kBackground);
  return sheet;
}

void set_pixel(
    Image& image,
    std::int64_t y,
    std::int64_t x,
    const Color& color) {
  const auto at = static_cast<std::ptrdiff_t>(3 * (y * image.shape.width + x));
  std::ranges::copy(color, image.pixels.begin() + at);
}

// Puts a picture on the sheet, each pixel `factor` times in both directions.
void place(
    const Image& image,
    std::int64_t top,
    std::int64_t left,
    std::int64_t factor,
    Image& sheet) {
  for (std::int64_t y = 0; y < image.shape.height * factor; ++y) {
    for (std::int64_t x = 0; x < image.shape.width * factor; ++x) {
      const auto from = static_cast<std::size_t>(
          3 * (y / factor * image.shape.width + x / factor));
      set_pixel(
          sheet,
          top + y,
          left + x,
          {image.pixels[from], image.pixels[from + 1], image.pixels[from + 2]});
    }
  }
}

Image picture_of(
    const Dataset& data,
    std::int64_t index,
    const PixelFormat& format) {
  const std::vector<std::int64_t> shape = data.sample_shape();
  const ImageShape size{
      .channels = shape[0],
      .height = shape[1],
      .width = shape[2]};
  const auto numel = static_cast<std::size_t>(data.target_format().numel());
  std::vector<float> numbers(static_cast<std::size_t>(size.numel()));
  std::vector<std::int64_t> classes(numel);
  std::vector<float> values(numel);
  TargetRows rows;
  rows.classes = classes;
  rows.values = values;
  data.read({&index, 1}, /*epoch=*/0, numbers, rows);
  return internal::sample_picture(numbers, size, format);
}

// Shape: `mask` [H, W] of class numbers.
Image coloured(const at::Tensor& mask) {
  const at::Tensor numbers = mask.to(at::kLong).contiguous();
  return internal::mask_picture(
      {numbers.const_data_ptr<std::int64_t>(),
       static_cast<std::size_t>(numbers.numel())},
      numbers.size(0),
      numbers.size(1));
}

std::vector<Image> pictures_of(
    const EvalAnswer& answer,
    const train::WorstSample& sample) {
  std::vector<Image> pictures{picture_of(
      *answer.parts[sample.part],
      sample.index,
      answer.trained.pixels)};
  if (train::output_kind(answer.trained) == train::OutputKind::kMasks) {
    pictures.push_back(coloured(sample.target));
    pictures.push_back(coloured(sample.output.argmax(0)));
  }
  return pictures;
}

} // namespace

Image worst_sheet(const EvalAnswer& answer) {
  const std::vector<train::WorstSample>& worst = answer.found.worst;
  const std::vector<std::int64_t>& shape = answer.trained.sample_shape;
  if (worst.empty() || shape.size() != 3) {
    return {};
  }
  const bool has_masks =
      train::output_kind(answer.trained) == train::OutputKind::kMasks;
  const std::int64_t longer = std::max(shape[1], shape[2]);
  const std::int64_t factor =
      std::max<std::int64_t>(1, (kSmallest + longer - 1) / longer);
  const std::int64_t height = shape[1] * factor;
  const std::int64_t width = shape[2] * factor;
  const std::int64_t tile = has_masks ? 3 * width : width;
  const auto count = static_cast<std::int64_t>(worst.size());
  const std::int64_t columns = std::min(count, kInRow);
  const std::int64_t rows = (count + kInRow - 1) / kInRow;
  Image sheet = empty_sheet(
      rows * (height + kGap) + kGap,
      columns * (tile + kGap) + kGap);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t top = kGap + i / kInRow * (height + kGap);
    std::int64_t left = kGap + i % kInRow * (tile + kGap);
    for (const Image& picture :
         pictures_of(answer, worst[static_cast<std::size_t>(i)])) {
      place(picture, top, left, factor, sheet);
      left += width;
    }
  }
  return sheet;
}

} // namespace lockstep::cli_train
