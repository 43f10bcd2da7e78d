// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/augment_plan.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/image_geometry.h"

namespace lockstep::internal {
namespace {

constexpr std::size_t kMaxSteps = 64;
constexpr std::ptrdiff_t kNone = -1;

[[noreturn]] void bad_augment(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.augment",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_DATA_OPTION"});
}

// "did you mean X?", or all that there are.
std::string hint_for(
    std::string_view word,
    const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  if (!near.empty()) {
    return format("did you mean '{}'?", near);
  }
  return known.empty() ? "it takes no numbers but 'p'"
                       : "known are " + join(known, ", ");
}

template <class Row>
std::vector<std::string> names_of(std::span<const Row> rows) {
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const Row& row : rows) {
    names.emplace_back(row.name);
  }
  return names;
}

const StepKind& kind_of(const std::string& name) {
  const auto kinds = step_kinds();
  const auto found = std::ranges::find(kinds, name, &StepKind::name);
  if (found == kinds.end()) {
    bad_augment(
        format("unknown step '{}'", escape(name)),
        hint_for(name, names_of(kinds)));
  }
  return *found;
}

bool takes_one(RangeKind kind) {
  return kind == RangeKind::kNumber || kind == RangeKind::kWhole;
}

Range range_of(RangeKind kind, const std::vector<double>& values) {
  const double first = values.front();
  if (values.size() == 2) {
    return {first, values.back()};
  }
  switch (kind) {
    case RangeKind::kAroundZero:
      return {-std::abs(first), std::abs(first)};
    case RangeKind::kAroundOne:
      return {std::max(0.0, 1.0 - first), 1.0 + first};
    default:
      return {first, first};
  }
}

Range checked_range(
    const std::string& step,
    const StepParameter& parameter,
    const std::vector<double>& values) {
  const std::string name = format("{} of {}", parameter.name, step);
  const std::size_t most = takes_one(parameter.kind) ? 1 : 2;
  if (values.empty() || values.size() > most) {
    bad_augment(format(
        "{} takes {}, got {}",
        name,
        most == 1 ? "one number" : "one number or two",
        values.size()));
  }
  const Range range = range_of(parameter.kind, values);
  for (const double value : {values.front(), range.first, range.last}) {
    if (!(value >= parameter.bounds.first && value <= parameter.bounds.last)) {
      bad_augment(format(
          "{} must be {} to {}, got {}",
          name,
          parameter.bounds.first,
          parameter.bounds.last,
          value));
    }
  }
  if (parameter.kind != RangeKind::kPair && range.first > range.last) {
    bad_augment(format(
        "{} must be a smaller and a larger number, got {} and {}",
        name,
        range.first,
        range.last));
  }
  if (parameter.kind == RangeKind::kWhole &&
      range.first != std::floor(range.first)) {
    bad_augment(format("{} must be a whole number, got {}", name, range.first));
  }
  return range;
}

void check_names(const AugmentStep& step, const StepKind& kind) {
  for (const auto& [name, values] : step.values) {
    if (std::ranges::find(kind.parameters, name, &StepParameter::name) ==
        kind.parameters.end()) {
      bad_augment(
          format("{} has no number '{}'", step.name, escape(name)),
          hint_for(name, names_of(kind.parameters)));
    }
  }
}

AugmentPlan::Step planned(const AugmentStep& step, std::uint32_t number) {
  const StepKind& kind = kind_of(step.name);
  check_names(step, kind);
  const double probability = step.probability.value_or(kind.probability);
  if (!(probability >= 0 && probability <= 1)) {
    bad_augment(
        format("p of {} must be 0 to 1, got {}", step.name, probability));
  }
  AugmentPlan::Step plan{
      .kind = &kind,
      .probability = probability,
      .number = number};
  plan.values.reserve(kind.parameters.size());
  for (const StepParameter& parameter : kind.parameters) {
    const auto given = step.values.find(std::string(parameter.name));
    plan.values.push_back(
        given == step.values.end()
            ? parameter.standard
            : checked_range(step.name, parameter, given->second));
  }
  if (kind.name == "blur" && std::fmod(plan.values[0].first, 2) != 1) {
    bad_augment(
        format("kernel of blur must be odd, got {}", plan.values[0].first));
  }
  return plan;
}

bool is_sizing(const StepKind& kind) {
  return kind.name == "random_resized_crop" || kind.name == "fit";
}

} // namespace

std::span<const StepKind> step_kinds() {
  static const std::vector<StepKind> kinds = [] {
    std::vector<StepKind> all;
    for (const auto& rows : {moving_steps(), color_steps(), auto_steps()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    std::ranges::sort(all, {}, &StepKind::name);
    return all;
  }();
  return kinds;
}

AugmentPlan::AugmentPlan(
    const Augment& augment,
    const AugmenterOptions& options)
    : options_(options) {
  if (augment.steps.size() > kMaxSteps) {
    bad_augment(
        format("at most {} steps, got {}", kMaxSteps, augment.steps.size()));
  }
  const bool has_size = options.height > 0 && options.width > 0;
  if (!has_size && (options.height != 0 || options.width != 0)) {
    bad_augment(format(
        "pictures of {} x {}: both sides must be above 0, or both 0",
        options.height,
        options.width));
  }
  steps_.reserve(augment.steps.size());
  for (std::size_t i = 0; i < augment.steps.size(); ++i) {
    steps_.push_back(planned(augment.steps[i], static_cast<std::uint32_t>(i)));
    const Step& step = steps_.back();
    if (!is_sizing(*step.kind)) {
      continue;
    }
    if (sizing_ != kNone || step.probability != 1 || !has_size) {
      bad_augment(
          !has_size ? format("{} needs a size", step.kind->name)
          : sizing_ != kNone
              ? format("{} is a second step that sizes", step.kind->name)
              : format("{} always happens: p must be 1", step.kind->name),
          "one step gives pictures their size, random_resized_crop or fit");
    }
    sizing_ = static_cast<std::ptrdiff_t>(i);
  }
}

AnnotatedImage AugmentPlan::apply(
    AnnotatedImage sample,
    std::int64_t epoch,
    std::int64_t index) const {
  const ImageShape& shape = sample.image.shape;
  if (sample.mask && (sample.mask->shape.height != shape.height ||
                      sample.mask->shape.width != shape.width)) {
    bad_augment(format(
        "the mask has {} x {} pixels, its picture {} x {}",
        sample.mask->shape.width,
        sample.mask->shape.height,
        shape.width,
        shape.height));
  }
  if (sizing_ == kNone && options_.height > 0) {
    fit(sample, options_.height, options_.width);
  }
  run(sample, 0, epoch, index);
  return sample;
}

void AugmentPlan::run(
    AnnotatedImage& sample,
    std::size_t first,
    std::int64_t epoch,
    std::int64_t index) const {
  for (std::size_t i = first; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Draws draws(options_.seed, epoch, index, step.number);
    if (draws.uniform() < step.probability) {
      step.kind->apply(
          {.sample = sample,
           .values = step.values,
           .draws = draws,
           .height = options_.height,
           .width = options_.width});
    }
  }
}

Region AugmentPlan::first_crop(
    const ImageShape& whole,
    std::int64_t epoch,
    std::int64_t index) const {
  const Step& step = steps_.front();
  Draws draws(options_.seed, epoch, index, step.number);
  draws.uniform(); // whether it happens: always
  return random_crop(whole, step.values[0], step.values[1], draws);
}

AnnotatedImage AugmentPlan::apply_to_crop(
    AnnotatedImage crop,
    std::int64_t epoch,
    std::int64_t index) const {
  const ImageShape& shape = crop.image.shape;
  crop_and_resize(
      crop,
      {.height = shape.height, .width = shape.width},
      options_.height,
      options_.width);
  run(crop, 1, epoch, index);
  return crop;
}

std::int64_t AugmentPlan::min_side() const {
  const std::int64_t longer = std::max(options_.height, options_.width);
  if (longer == 0 || sizing_ > 0) {
    return 0;
  }
  if (sizing_ == kNone || steps_.front().kind->name == "fit") {
    return 2 * longer;
  }
  // The narrowest crop of a square; of other pictures it is wider.
  const Range& scale = steps_.front().values[0];
  const Range& ratio = steps_.front().values[1];
  const double share =
      std::sqrt(scale.first * std::min({1.0, ratio.first, 1.0 / ratio.last}));
  return static_cast<std::int64_t>(
      std::ceil(2.0 * static_cast<double>(longer) / share));
}

} // namespace lockstep::internal
