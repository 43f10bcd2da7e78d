// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that move pixels, and what is marked in the picture with them.
#include <algorithm>
#include <cmath>

#include "lockstep/data/internal/augment_plan.h"
#include "lockstep/data/internal/image_geometry.h"

namespace lockstep::internal {
namespace {

using enum RangeKind;

constexpr Range kLevels{0, 255};
constexpr Range kSwitch{0, 1};

std::uint8_t level(const Range& value) {
  return static_cast<std::uint8_t>(value.first);
}

void apply_random_resized_crop(const StepInput& input) {
  const Region region = random_crop(
      input.sample.image.shape,
      input.values[0],
      input.values[1],
      input.draws);
  crop_and_resize(input.sample, region, input.height, input.width);
}

void apply_fit(const StepInput& input) {
  fit(input.sample, input.height, input.width);
}

void apply_crop(const StepInput& input) {
  const auto padding = static_cast<std::int64_t>(input.values[0].first);
  const ImageShape shape = input.sample.image.shape;
  const std::int64_t top = input.draws.below(2 * padding + 1) - padding;
  const std::int64_t left = input.draws.below(2 * padding + 1) - padding;
  crop(
      input.sample,
      {.top = top, .left = left, .height = shape.height, .width = shape.width},
      level(input.values[1]));
}

void apply_horizontal_flip(const StepInput& input) {
  flip_horizontally(input.sample);
}

void apply_vertical_flip(const StepInput& input) {
  flip_vertically(input.sample);
}

void apply_rotation(const StepInput& input) {
  // Its angles go the other way round, counter-clockwise.
  move(
      input.sample,
      {.angle = -input.drawn(0),
       .is_bilinear = input.values[1].first != 0,
       .fill = level(input.values[2])});
}

void apply_affine(const StepInput& input) {
  AffineMap map{.angle = input.drawn(0)};
  const ImageShape& shape = input.sample.image.shape;
  const auto shift = [&](double share, std::int64_t side) {
    const double most = share * static_cast<double>(side);
    return static_cast<double>(half_to_even(input.draws.between(-most, most)));
  };
  map.right = shift(input.values[1].first, shape.width);
  map.down = shift(input.values[1].last, shape.height);
  map.scale = input.drawn(2);
  map.shear_x = input.drawn(3);
  map.shear_y = input.drawn(4);
  map.is_bilinear = input.values[5].first != 0;
  map.fill = level(input.values[6]);
  move(input.sample, map);
}

// Only the picture changes; up to ten tries, as torchvision's.
void apply_erasing(const StepInput& input) {
  constexpr int kTries = 10;
  Image& image = input.sample.image;
  const std::int64_t height = image.shape.height;
  const std::int64_t width = image.shape.width;
  const Range& ratio = input.values[1];
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(height * width) * input.drawn(0);
    const double aspect = std::exp(
        input.draws.between(std::log(ratio.first), std::log(ratio.last)));
    Region region{
        .height = half_to_even(std::sqrt(area * aspect)),
        .width = half_to_even(std::sqrt(area / aspect))};
    if (region.height < height && region.width < width) {
      region.top = input.draws.below(height - region.height + 1);
      region.left = input.draws.below(width - region.width + 1);
      erase(image, region, level(input.values[2]));
      return;
    }
  }
}

constexpr std::array kCropParameters{
    StepParameter{"padding", kWhole, {4, 4}, {0, 1024}},
    StepParameter{"fill", kWhole, {0, 0}, kLevels}};

constexpr std::array kResizedCropParameters{
    StepParameter{"scale", kRange, {0.08, 1}, {1e-4, 1}},
    StepParameter{"ratio", kRange, {3.0 / 4, 4.0 / 3}, {1e-2, 100}}};

constexpr std::array kRotationParameters{
    StepParameter{"degrees", kAroundZero, {-15, 15}, {-360, 360}},
    StepParameter{"bilinear", kWhole, {0, 0}, kSwitch},
    StepParameter{"fill", kWhole, {0, 0}, kLevels}};

constexpr std::array kAffineParameters{
    StepParameter{"degrees", kAroundZero, {0, 0}, {-360, 360}},
    StepParameter{"translate", kPair, {0, 0}, {0, 1}},
    StepParameter{"scale", kRange, {1, 1}, {1e-2, 100}},
    StepParameter{"shear_x", kAroundZero, {0, 0}, {-80, 80}},
    StepParameter{"shear_y", kAroundZero, {0, 0}, {-80, 80}},
    StepParameter{"bilinear", kWhole, {0, 0}, kSwitch},
    StepParameter{"fill", kWhole, {0, 0}, kLevels}};

constexpr std::array kErasingParameters{
    StepParameter{"scale", kRange, {0.02, 0.33}, {0, 1}},
    StepParameter{"ratio", kRange, {0.3, 3.3}, {1e-2, 100}},
    StepParameter{"value", kWhole, {0, 0}, kLevels}};

} // namespace

Region random_crop(
    const ImageShape& shape,
    const Range& scale,
    const Range& ratio,
    Draws& draws) {
  constexpr int kTries = 10;
  const std::int64_t height = shape.height;
  const std::int64_t width = shape.width;
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(height * width) *
                        draws.between(scale.first, scale.last);
    const double aspect =
        std::exp(draws.between(std::log(ratio.first), std::log(ratio.last)));
    Region region{
        .height = half_to_even(std::sqrt(area / aspect)),
        .width = half_to_even(std::sqrt(area * aspect))};
    if (region.width > 0 && region.width <= width && region.height > 0 &&
        region.height <= height) {
      region.top = draws.below(height - region.height + 1);
      region.left = draws.below(width - region.width + 1);
      return region;
    }
  }
  Region region{.height = height, .width = width};
  const double aspect =
      static_cast<double>(width) / static_cast<double>(height);
  if (aspect < ratio.first) {
    region.height = half_to_even(static_cast<double>(width) / ratio.first);
  } else if (aspect > ratio.last) {
    region.width = half_to_even(static_cast<double>(height) * ratio.last);
  }
  region.top = (height - region.height) / 2;
  region.left = (width - region.width) / 2;
  return region;
}

std::span<const StepKind> moving_steps() {
  static constexpr std::array kSteps{
      StepKind{
          "random_resized_crop",
          1,
          kResizedCropParameters,
          apply_random_resized_crop},
      StepKind{"fit", 1, {}, apply_fit},
      StepKind{"crop", 1, kCropParameters, apply_crop},
      StepKind{"horizontal_flip", 0.5, {}, apply_horizontal_flip},
      StepKind{"vertical_flip", 0.5, {}, apply_vertical_flip},
      StepKind{"rotation", 1, kRotationParameters, apply_rotation},
      StepKind{"affine", 1, kAffineParameters, apply_affine},
      StepKind{"erasing", 0.5, kErasingParameters, apply_erasing},
  };
  return kSteps;
}

} // namespace lockstep::internal
