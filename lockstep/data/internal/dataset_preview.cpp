// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/class_color.h"
#include "lockstep/data/internal/data_facts.h"

namespace lockstep::internal {
namespace {

constexpr std::int64_t kSamples = 10;
constexpr std::int64_t kInRow = 5;
constexpr std::int64_t kGap = 4;
constexpr std::uint8_t kBackground = 128;
/// Units: pixels; smaller images are magnified.
constexpr std::int64_t kSmallest = 64;

// Puts pixels, magnified, at a place of the sheet.
class Tile {
 public:
  Tile(Image& sheet, std::int64_t top, std::int64_t left, std::int64_t factor)
      : sheet_(sheet), top_(top), left_(left), factor_(factor) {}

  void set(std::int64_t y, std::int64_t x, const Color& color) {
    for (std::int64_t dy = 0; dy < factor_; ++dy) {
      for (std::int64_t dx = 0; dx < factor_; ++dx) {
        const std::int64_t row = top_ + y * factor_ + dy;
        const std::int64_t column = left_ + x * factor_ + dx;
        const auto at =
            static_cast<std::size_t>(3 * (row * sheet_.shape.width + column));
        std::ranges::copy(
            color,
            sheet_.pixels.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }

 private:
  Image& sheet_;
  std::int64_t top_;
  std::int64_t left_;
  std::int64_t factor_;
};

void draw_image(
    std::vector<float> numbers,
    const ImageShape& shape,
    Tile tile) {
  const auto [low, high] = std::ranges::minmax(numbers);
  if (low < 0 || high > 1) {
    const float range = high > low ? high - low : 1;
    for (float& number : numbers) {
      number = (number - low) / range;
    }
  }
  const std::int64_t plane = shape.height * shape.width;
  for (std::int64_t i = 0; i < plane; ++i) {
    Color color{};
    for (std::size_t c = 0; c < color.size(); ++c) {
      const std::int64_t from =
          shape.channels >= 3 ? static_cast<std::int64_t>(c) : 0;
      constexpr float kWhite = 255;
      color.at(c) = static_cast<std::uint8_t>(std::lround(
          numbers[static_cast<std::size_t>(from * plane + i)] * kWhite));
    }
    tile.set(i / shape.width, i % shape.width, color);
  }
}

std::string target_text(
    const Dataset& data,
    const std::vector<std::int64_t>& classes,
    const std::vector<float>& values) {
  if (data.target_format().kind == TargetKind::kValues) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), 4); ++i) {
      texts.push_back(shortest(values[i]));
    }
    return join(texts, " ") + (values.size() > texts.size() ? " ..." : "");
  }
  if (classes.size() != 1) {
    return "";
  }
  const auto names = data.class_names();
  const auto label = static_cast<std::size_t>(classes[0]);
  return label < names.size() ? names[label] : format("{}", label);
}

ImageShape checked_shape(const Dataset& data) {
  const std::vector<std::int64_t> shape = data.sample_shape();
  if (shape.size() != 3) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.sheet",
         .message = format(
             "samples of {} dimensions are no images; there is no sheet of "
             "them",
             shape.size()),
         .detail = "E_DATA_OPTION"});
  }
  return {.channels = shape[0], .height = shape[1], .width = shape[2]};
}

// One sample on the sheet; what it is called.
std::string draw_sample(
    const Dataset& data,
    std::int64_t index,
    const ImageShape& shape,
    Tile tile,
    std::optional<Tile> mask_tile) {
  const TargetFormat format_of = data.target_format();
  const auto numel = static_cast<std::size_t>(format_of.numel());
  const bool has_values = format_of.kind == TargetKind::kValues;
  std::vector<float> numbers(static_cast<std::size_t>(shape.numel()));
  std::vector<std::int64_t> classes(has_values ? 0 : numel);
  std::vector<float> values(has_values ? numel : 0);
  TargetRows rows;
  rows.classes = classes;
  rows.values = values;
  std::string name = data.sample_name(index);
  try {
    data.read(std::span(&index, 1), /*epoch=*/0, numbers, rows);
  } catch (const Exception&) {
    return name + ": cannot be read";
  }
  draw_image(std::move(numbers), shape, tile);
  if (mask_tile) {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      mask_tile->set(
          at / shape.width,
          at % shape.width,
          class_color(classes[i]));
    }
    return name;
  }
  return format("{}: {}", name, target_text(data, classes, values));
}

} // namespace

ContactSheet contact_sheet(const DatasetParts& data) {
  const Dataset& train = *data.train;
  const ImageShape shape = checked_shape(train);
  const std::int64_t longer = std::max(shape.height, shape.width);
  const std::int64_t factor =
      std::max<std::int64_t>(1, (kSmallest + longer - 1) / longer);
  const bool has_masks =
      train.target_format().kind == TargetKind::kClasses &&
      train.target_format().shape == std::vector{shape.height, shape.width};
  const std::int64_t height = shape.height * factor;
  const std::int64_t width = shape.width * factor;
  const std::int64_t tile_width = has_masks ? 2 * width : width;
  const std::int64_t count = std::min(kSamples, train.size());
  const std::int64_t rows = (count + kInRow - 1) / kInRow;
  const std::int64_t columns = std::min(count, kInRow);
  ContactSheet sheet;
  sheet.image.shape = {
      .channels = 3,
      .height = rows * (height + kGap) + kGap,
      .width = columns * (tile_width + kGap) + kGap};
  sheet.image.pixels.assign(
      static_cast<std::size_t>(sheet.image.shape.numel()),
      kBackground);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t top = kGap + i / kInRow * (height + kGap);
    const std::int64_t left = kGap + i % kInRow * (tile_width + kGap);
    sheet.samples.push_back(draw_sample(
        train,
        i * train.size() / count,
        shape,
        Tile(sheet.image, top, left, factor),
        has_masks ? std::optional(Tile(sheet.image, top, left + width, factor))
                  : std::nullopt));
  }
  return sheet;
}

} // namespace lockstep::internal
