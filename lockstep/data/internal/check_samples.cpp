// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/check_samples.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/uncounted.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

[[noreturn]] void bad_sample(
    const Dataset& dataset,
    std::int64_t sample,
    std::string message,
    std::string_view detail) {
  const std::string name = dataset.sample_name(sample);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.read",
       .message = std::move(message),
       .path = name == format("sample {}", sample) ? "" : name,
       .detail = std::string(detail)});
}

} // namespace

void check_classes(
    const Dataset& dataset,
    std::span<const std::int64_t> indices,
    std::span<const std::int64_t> classes) {
  const std::int64_t count = dataset.num_classes();
  const TargetFormat target = dataset.target_format();
  const std::int64_t uncounted =
      target.shape.empty() ? kUncountedClass : uncounted_pixel(count);
  const auto wrong = std::ranges::find_if(classes, [&](std::int64_t number) {
    return (number < 0 || number >= count) && number != uncounted;
  });
  if (count == 0 || wrong == classes.end()) {
    return;
  }
  const std::int64_t sample = indices
      [static_cast<std::size_t>(wrong - classes.begin()) /
       static_cast<std::size_t>(target.numel())];
  bad_sample(
      dataset,
      sample,
      format(
          "the target of sample {} is not a class; expected 0 to {}{}, got {}",
          sample,
          count - 1,
          target.shape.empty()
              ? ""
              : format(", or {} for what is not counted", uncounted),
          *wrong),
      "E_LABEL");
}

void check_finite(
    const Dataset& dataset,
    std::span<const std::int64_t> indices,
    std::span<const float> numbers,
    std::string_view what) {
  const auto wrong = std::ranges::find_if(numbers, [](float number) {
    return !std::isfinite(number);
  });
  if (wrong == numbers.end()) {
    return;
  }
  const std::size_t each = numbers.size() / indices.size();
  const auto place = static_cast<std::size_t>(wrong - numbers.begin());
  const std::int64_t sample = indices[place / each];
  bad_sample(
      dataset,
      sample,
      format(
          "the {} of sample {} is not finite: number {} of {} is {}",
          what,
          sample,
          place % each,
          each,
          *wrong),
      "E_NOT_FINITE");
}

} // namespace lockstep::internal
