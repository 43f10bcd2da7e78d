// SPDX-License-Identifier: BSD-3-Clause
//
// RandAugment (Cubuk, Zoph, Shlens and Le 2020) and TrivialAugment (Mueller and
// Hutter 2021) with the tables of torchvision.transforms.v2.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"
#include "lockstep/data/internal/augment_plan.h"
#include "lockstep/data/internal/image_geometry.h"
#include "lockstep/data/internal/image_operations.h"

namespace lockstep::internal {
namespace {

using enum RangeKind;

// How strong an operation is in the last bin; in the first it is 0 or, for
// posterize, 8 bits, for solarize 1.
struct Strength {
  std::string_view name = {};
  bool has_sign = false;
  float rand = 0;
  float trivial = 0;
};

constexpr std::array kStrengths{
    Strength{"identity", false, 0, 0},
    Strength{"shear_x", true, 0.3F, 0.99F},
    Strength{"shear_y", true, 0.3F, 0.99F},
    // Of RandAugment in parts of the side.
    Strength{"translate_x", true, static_cast<float>(150.0 / 331.0), 32},
    Strength{"translate_y", true, static_cast<float>(150.0 / 331.0), 32},
    Strength{"rotate", true, 30, 135},
    Strength{"brightness", true, 0.9F, 0.99F},
    Strength{"saturation", true, 0.9F, 0.99F},
    Strength{"contrast", true, 0.9F, 0.99F},
    Strength{"sharpness", true, 0.9F, 0.99F},
    // Bits that go.
    Strength{"posterize", false, 4, 6},
    Strength{"solarize", false, 0, 0},
    Strength{"autocontrast", false, 0, 0},
    Strength{"equalize", false, 0, 0},
};

constexpr auto kOperations = [] {
  std::array<AutoOperation, kStrengths.size()> operations{};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    operations[i] = {
        .name = kStrengths[i].name,
        .has_sign = kStrengths[i].has_sign};
  }
  return operations;
}();

const Strength& strength_of(std::string_view name) {
  const auto* const found =
      std::ranges::find(kStrengths, name, &Strength::name);
  LOCKSTEP_CHECK(found != kStrengths.end());
  return *found;
}

// torch.linspace(first, last, 31)[bin]: from whichever end is nearer, with one
// rounding, which decides about whole pixels.
double linear(float first, float last, std::int64_t bin) {
  const double step = (last - first) / static_cast<float>(kAutoBins - 1);
  const double value =
      bin < kAutoBins / 2
          ? first + step * static_cast<double>(bin)
          : last - step * static_cast<double>(kAutoBins - 1 - bin);
  return static_cast<float>(value);
}

double strength_in(const Strength& strength, float last, std::int64_t bin) {
  if (strength.name == "posterize") {
    const float removed =
        static_cast<float>(bin) / (static_cast<float>(kAutoBins - 1) / last);
    return std::nearbyint(8.0F - removed);
  }
  return strength.name == "solarize" ? linear(1, 0, bin) : linear(0, last, bin);
}

double degrees(double slope) {
  return std::atan(slope) * 180.0 / std::numbers::pi;
}

bool flips_sign(const AutoOperation& operation, Draws& draws) {
  return operation.has_sign && draws.uniform() <= 0.5;
}

const AutoOperation& drawn_operation(Draws& draws) {
  return kOperations.at(
      static_cast<std::size_t>(draws.below(std::ssize(kOperations))));
}

void apply_rand_augment(const StepInput& input) {
  const auto count = static_cast<int>(input.values[0].first);
  const auto bin = static_cast<std::int64_t>(input.values[1].first);
  for (int i = 0; i < count; ++i) {
    const AutoOperation& operation = drawn_operation(input.draws);
    const double strength =
        rand_augment_strength(operation.name, bin, input.sample.image.shape);
    apply_auto_operation(
        input.sample,
        operation.name,
        flips_sign(operation, input.draws) ? -strength : strength);
  }
}

void apply_trivial_augment(const StepInput& input) {
  const AutoOperation& operation = drawn_operation(input.draws);
  const double strength =
      trivial_augment_strength(operation.name, input.draws.below(kAutoBins));
  apply_auto_operation(
      input.sample,
      operation.name,
      flips_sign(operation, input.draws) ? -strength : strength);
}

constexpr std::array kRandParameters{
    StepParameter{"ops", kWhole, {2, 2}, {0, 16}},
    StepParameter{"magnitude", kWhole, {9, 9}, {0, kAutoBins - 1}}};

// The map of an operation that moves pixels; nothing for the others.
bool find_map(std::string_view operation, double strength, AffineMap& map) {
  if (operation == "shear_x") {
    map = {.shear_x = degrees(strength), .around_corner = true};
  } else if (operation == "shear_y") {
    map = {.shear_y = degrees(strength), .around_corner = true};
  } else if (operation == "translate_x") {
    map = {.right = std::trunc(strength)};
  } else if (operation == "translate_y") {
    map = {.down = std::trunc(strength)};
  } else if (operation == "rotate") {
    map = {.angle = -strength};
  } else {
    return false;
  }
  return true;
}

} // namespace

std::span<const AutoOperation> auto_operations() {
  return kOperations;
}

double rand_augment_strength(
    std::string_view operation,
    std::int64_t bin,
    const ImageShape& shape) {
  const Strength& strength = strength_of(operation);
  float last = strength.rand;
  if (operation == "translate_x" || operation == "translate_y") {
    const std::int64_t side =
        operation == "translate_x" ? shape.width : shape.height;
    last = static_cast<float>(150.0 / 331.0 * static_cast<double>(side));
  }
  return strength_in(strength, last, bin);
}

double trivial_augment_strength(std::string_view operation, std::int64_t bin) {
  const Strength& strength = strength_of(operation);
  return strength_in(strength, strength.trivial, bin);
}

void apply_auto_operation(
    AnnotatedImage& sample,
    std::string_view operation,
    double strength) {
  AffineMap map;
  if (operation == "identity") {
    return;
  }
  if (find_map(operation, strength, map)) {
    move(sample, map);
    return;
  }
  const ImageOperation* const change = find_operation(operation);
  LOCKSTEP_CHECK(change != nullptr);
  const bool is_factor = operation == "brightness" ||
                         operation == "saturation" || operation == "contrast" ||
                         operation == "sharpness";
  change->apply(
      sample.image,
      is_factor                 ? 1.0 + strength
      : operation == "solarize" ? 255.0 * strength
                                : strength);
}

std::span<const StepKind> auto_steps() {
  static constexpr std::array kSteps{
      StepKind{"rand_augment", 1, kRandParameters, apply_rand_augment},
      StepKind{"trivial_augment", 1, {}, apply_trivial_augment},
  };
  return kSteps;
}

} // namespace lockstep::internal
