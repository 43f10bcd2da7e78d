// SPDX-License-Identifier: BSD-3-Clause
//
// An `Augment` that was checked against the table of steps, ready to run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/data/augment.h"
#include "lockstep/data/internal/draws.h"
#include "lockstep/data/internal/resize_uint8.h"

namespace lockstep::internal {

/// Two numbers; of a single one both are that.
struct Range {
  double first = 0;
  double last = 0;
};

/// What one number means where two are expected, and what two have to be.
enum class RangeKind {
  /// One number only.
  kNumber,
  /// One whole number only.
  kWhole,
  /// Two in order; one: always that.
  kRange,
  /// Two in order; one, x: from -x to x.
  kAroundZero,
  /// Two in order; one, x: from 1 - x, not below 0, to 1 + x.
  kAroundOne,
  /// Two numbers for two things; one: for both.
  kPair,
};

/// A number of a step, by name.
struct StepParameter {
  std::string_view name = {};
  RangeKind kind = RangeKind::kNumber;
  /// torchvision's, where it is not given.
  Range standard = {};
  /// Where the numbers must lie.
  Range bounds = {};
};

/// What a step works on.
struct StepInput {
  AnnotatedImage& sample;
  /// In the order of the step's parameters.
  std::span<const Range> values;
  Draws& draws;
  /// Units: pixels of the pictures that come out.
  std::int64_t height = 0;
  std::int64_t width = 0;

  /// A number of the parameter's range.
  [[nodiscard]] double drawn(std::size_t parameter) const {
    return draws.between(values[parameter].first, values[parameter].last);
  }
};

/// A row of the table of steps.
struct StepKind {
  std::string_view name = {};
  /// torchvision's, where none is given.
  double probability = 1;
  std::span<const StepParameter> parameters = {};
  void (*apply)(const StepInput& input) = nullptr;
};

/// All steps, sorted by name: random_resized_crop, color_jitter, ...
std::span<const StepKind> step_kinds();

/// The rows of augment_moves.cpp, augment_colors.cpp and auto_augment.cpp.
std::span<const StepKind> moving_steps();
std::span<const StepKind> color_steps();
std::span<const StepKind> auto_steps();

class AugmentPlan {
 public:
  struct Step {
    const StepKind* kind = nullptr;
    double probability = 1;
    std::vector<Range> values = {};
    /// In the `Augment`: what the draws depend on.
    std::uint32_t number = 0;
  };

  /// Errors: as `Augmenter`'s.
  AugmentPlan(const Augment& augment, const AugmenterOptions& options);

  [[nodiscard]] AnnotatedImage
  apply(AnnotatedImage sample, std::int64_t epoch, std::int64_t index) const;
  [[nodiscard]] std::int64_t min_side() const;

  /// Whether the first step takes a crop and nothing else of the picture.
  [[nodiscard]] bool begins_with_crop() const {
    return sizing_ == 0 && steps_.front().kind->name == "random_resized_crop";
  }
  /// That crop. Only where the plan begins with one.
  [[nodiscard]] Region first_crop(
      const ImageShape& whole,
      std::int64_t epoch,
      std::int64_t index) const;
  /// As `apply`, of a sample of which the first crop alone is given.
  [[nodiscard]] AnnotatedImage apply_to_crop(
      AnnotatedImage crop,
      std::int64_t epoch,
      std::int64_t index) const;

 private:
  /// The steps from number `first` on.
  void run(
      AnnotatedImage& sample,
      std::size_t first,
      std::int64_t epoch,
      std::int64_t index) const;

  AugmenterOptions options_;
  std::vector<Step> steps_;
  /// The step that gives pictures their size; -1: before all others.
  std::ptrdiff_t sizing_ = -1;
};

/// The crop of RandomResizedCrop: up to ten tries, else the largest crop in the
/// middle with an allowed ratio.
Region random_crop(
    const ImageShape& shape,
    const Range& scale,
    const Range& ratio,
    Draws& draws);

/// An operation of RandAugment or TrivialAugmentWide, and its strength in each
/// of 31 bins.
struct AutoOperation {
  std::string_view name = {};
  /// Half of the samples get the negative strength.
  bool has_sign = false;
};
inline constexpr std::int64_t kAutoBins = 31;
std::span<const AutoOperation> auto_operations();

/// Strength number `bin` for an image of that shape, torchvision's tables.
double rand_augment_strength(
    std::string_view operation,
    std::int64_t bin,
    const ImageShape& shape);
double trivial_augment_strength(std::string_view operation, std::int64_t bin);

/// Does what torchvision's _apply_image_or_video_transform does.
void apply_auto_operation(
    AnnotatedImage& sample,
    std::string_view operation,
    double strength);

} // namespace lockstep::internal
