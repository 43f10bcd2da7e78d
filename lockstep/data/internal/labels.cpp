// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/labels.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/uncounted.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

// Up to here labels are classes, however few samples there are.
constexpr std::int64_t kUsualClasses = 1000;

struct LabelRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = -1;
  std::int64_t samples = 0;
};

void add(const PartLabels& part, LabelRange& range) {
  const auto [low, high] = std::ranges::minmax_element(part.labels);
  if (low == part.labels.end()) {
    return;
  }
  if (*low < 0) {
    bad_label(
        format(
            "the label of sample {} is {}; classes are numbers from 0 on",
            low - part.labels.begin(),
            *low),
        part.file);
  }
  range.low = std::min(range.low, *low);
  range.high = std::max(range.high, *high);
  range.samples += std::ssize(part.labels);
}

// The numbers of classes without a sample.
std::vector<std::string> absent_classes(
    std::span<const PartLabels> parts,
    std::int64_t count,
    std::int64_t first) {
  std::vector<bool> is_there(static_cast<std::size_t>(count));
  for (const PartLabels& part : parts) {
    for (const std::int64_t label : part.labels) {
      is_there[static_cast<std::size_t>(label)] = true;
    }
  }
  std::vector<std::string> absent;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_there[static_cast<std::size_t>(i)]) {
      absent.push_back(format("{}", i + first));
    }
  }
  return absent;
}

} // namespace

void bad_label(std::string message, const std::string& file, std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "data.open",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = file,
       .detail = "E_LABEL"});
}

Classes count_classes(std::span<const PartLabels> parts) {
  LabelRange range;
  for (const PartLabels& part : parts) {
    add(part, range);
  }
  if (range.samples == 0) {
    return {};
  }
  if (range.high >= std::max(kUsualClasses, range.samples)) {
    bad_label(
        format(
            "the labels go up to {}, with {} samples: these are no classes",
            range.high,
            range.samples),
        parts.front().file,
        "values to predict are numbers with a point, or say that they are "
        "values");
  }
  const std::int64_t first = range.low == 0 ? 0 : 1;
  Classes classes{.count = range.high + 1 - first};
  if (first == 1) {
    for (const PartLabels& part : parts) {
      std::ranges::for_each(part.labels, [](std::int64_t& label) { --label; });
    }
    for (std::int64_t i = 0; i < classes.count; ++i) {
      classes.names.push_back(format("{}", i + 1));
    }
    classes.notes.push_back(format(
        "no label is 0: class 0 is label 1, the last of {} is label {}",
        classes.count,
        classes.count));
  }
  const auto absent = absent_classes(parts, classes.count, first);
  if (!absent.empty()) {
    classes.notes.push_back(format(
        "{} of {} classes have no samples: {}",
        absent.size(),
        classes.count,
        some_names(absent)));
  }
  return classes;
}

void check_labels(const PartLabels& part, std::int64_t num_classes) {
  const auto wrong = std::ranges::find_if(part.labels, [&](std::int64_t label) {
    return label < 0 || label >= num_classes;
  });
  if (wrong != part.labels.end()) {
    bad_label(
        format(
            "the label of sample {} is no class; expected 0 to {}, got {}",
            wrong - part.labels.begin(),
            num_classes - 1,
            *wrong),
        part.file);
  }
}

void check_mask(
    std::span<const std::int64_t> mask,
    std::int64_t num_classes,
    const std::string& sample,
    const std::string& file) {
  const std::int64_t uncounted = uncounted_pixel(num_classes);
  const auto wrong = std::ranges::find_if(mask, [&](std::int64_t label) {
    return label >= num_classes && label != uncounted;
  });
  if (wrong != mask.end()) {
    bad_label(
        format(
            "the mask of {} has the number {}, which is no class; expected 0 "
            "to {}, or {} for what is not counted",
            sample,
            *wrong,
            num_classes - 1,
            uncounted),
        file);
  }
}

} // namespace lockstep::internal
