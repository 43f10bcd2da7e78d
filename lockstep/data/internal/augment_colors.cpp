// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that change colours only.
#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/data/internal/augment_plan.h"
#include "lockstep/data/internal/image_operations.h"

namespace lockstep::internal {
namespace {

using enum RangeKind;

using Change = void (*)(Image& image, double value);

// The parameters' order.
constexpr std::array<Change, 4> kJitters{
    change_brightness,
    change_contrast,
    change_saturation,
    change_hue};

// In a random order, as torchvision does it: Fisher and Yates from the end.
// What changes nothing is left out.
void apply_color_jitter(const StepInput& input) {
  constexpr std::array<double, kJitters.size()> kUnchanged{1, 1, 1, 0};
  std::array<std::size_t, kJitters.size()> order{0, 1, 2, 3};
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    const auto other = input.draws.below(static_cast<std::int64_t>(i) + 1);
    std::swap(order.at(i), order.at(static_cast<std::size_t>(other)));
  }
  std::array<double, kJitters.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values.at(i) = input.drawn(i);
  }
  for (const std::size_t i : order) {
    if (values.at(i) != kUnchanged.at(i)) {
      kJitters.at(i)(input.sample.image, values.at(i));
    }
  }
}

void apply_blur(const StepInput& input) {
  gaussian_blur(
      input.sample.image,
      static_cast<std::int64_t>(input.values[0].first),
      input.drawn(1));
}

// An operation of one number, or none.
template <Change kChange>
void apply_change(const StepInput& input) {
  kChange(input.sample.image, input.values.empty() ? 0 : input.values[0].first);
}

constexpr std::array kJitterParameters{
    StepParameter{"brightness", kAroundOne, {1, 1}, {0, 100}},
    StepParameter{"contrast", kAroundOne, {1, 1}, {0, 100}},
    StepParameter{"saturation", kAroundOne, {1, 1}, {0, 100}},
    StepParameter{"hue", kAroundZero, {0, 0}, {-0.5, 0.5}}};

constexpr std::array kBlurParameters{
    StepParameter{"kernel", kWhole, {3, 3}, {1, 101}},
    StepParameter{"sigma", kRange, {0.1, 2}, {1e-2, 1000}}};

constexpr std::array kPosterizeParameters{
    StepParameter{"bits", kWhole, {4, 4}, {0, 8}}};

constexpr std::array kSolarizeParameters{
    StepParameter{"threshold", kNumber, {128, 128}, {0, 255}}};

constexpr std::array kSharpnessParameters{
    StepParameter{"factor", kNumber, {2, 2}, {0, 100}}};

} // namespace

std::span<const StepKind> color_steps() {
  static constexpr std::array kSteps{
      StepKind{"color_jitter", 1, kJitterParameters, apply_color_jitter},
      StepKind{"grayscale", 0.1, {}, apply_change<to_grayscale>},
      StepKind{"blur", 1, kBlurParameters, apply_blur},
      StepKind{"posterize", 0.5, kPosterizeParameters, apply_change<posterize>},
      StepKind{"solarize", 0.5, kSolarizeParameters, apply_change<solarize>},
      StepKind{"autocontrast", 0.5, {}, apply_change<autocontrast>},
      StepKind{"equalize", 0.5, {}, apply_change<equalize>},
      StepKind{"invert", 0.5, {}, apply_change<invert>},
      StepKind{
          "sharpness",
          0.5,
          kSharpnessParameters,
          apply_change<change_sharpness>},
  };
  return kSteps;
}

} // namespace lockstep::internal
