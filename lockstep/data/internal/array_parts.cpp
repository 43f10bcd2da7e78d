// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/array_parts.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/uncounted.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/data/internal/labels.h"
#include "lockstep/data/internal/split.h"
#include "lockstep/data/made_dataset.h"

namespace lockstep::internal {
namespace {

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  sizes.reserve(shape.size());
  for (const std::int64_t size : shape) {
    sizes.push_back(format("{}", size));
  }
  return "[" + join(sizes, ", ") + "]";
}

[[noreturn]] void bad_shape(std::string message, const std::string& file) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "data.open",
       .message = std::move(message),
       .path = file,
       .detail = "E_DATA_SHAPE"});
}

void check_parts(const std::vector<ArrayPart>& parts) {
  const ArrayPart& first = parts.front();
  for (const ArrayPart& part : parts) {
    const std::int64_t samples = part.inputs.size();
    const bool has_classes = part.targets.rows.empty();
    const std::int64_t targets =
        has_classes ? std::ssize(part.classes) : part.targets.size();
    if (samples == 0) {
      bad_shape("there are no samples", part.file);
    }
    if (samples != targets) {
      bad_shape(
          format("there are {} samples and {} targets", samples, targets),
          part.file);
    }
    if (part.inputs.shape != first.inputs.shape ||
        part.target != first.target) {
      bad_shape(
          format(
              "the parts have different shapes: {} with targets {}, and {} "
              "with targets {}",
              text_of(first.inputs.shape),
              text_of(first.target.shape),
              text_of(part.inputs.shape),
              text_of(part.target.shape)),
          part.file);
    }
  }
}

// One more than the largest number of all masks that counts.
std::int64_t classes_in_masks(const std::vector<ArrayPart>& parts) {
  std::int64_t largest = -1;
  for (const ArrayPart& part : parts) {
    std::vector<std::int64_t> mask(
        static_cast<std::size_t>(part.targets.numel()));
    for (std::int64_t i = 0; i < part.targets.size(); ++i) {
      read_integers(part.targets, i, mask);
      for (const std::int64_t label : mask) {
        largest = label == kUncountedPixel ? largest : std::max(largest, label);
      }
    }
  }
  return largest + 1;
}

Classes classes_of(std::vector<ArrayPart>& parts, const ArrayNames& names) {
  std::vector<PartLabels> labels;
  labels.reserve(parts.size());
  for (ArrayPart& part : parts) {
    labels.push_back(
        {.labels = part.classes,
         .file = part.label_file.empty() ? part.file : part.label_file});
  }
  if (names.classes.empty()) {
    return count_classes(labels);
  }
  for (const PartLabels& part : labels) {
    check_labels(part, std::ssize(names.classes));
  }
  return {.count = std::ssize(names.classes), .names = names.classes};
}

ArraySamples
samples_of(ArrayPart part, const Classes& classes, const ArrayNames& names) {
  const bool has_classes = part.target.kind == TargetKind::kClasses;
  return {
      .inputs = std::move(part.inputs),
      .target = std::move(part.target),
      .classes = std::move(part.classes),
      .targets = std::move(part.targets),
      .num_classes = has_classes ? classes.count : 0,
      .class_names = has_classes ? classes.names : names.values,
      .file = std::move(part.file)};
}

// One part, dealt to two.
void split_part(
    ArraySamples samples,
    const DatasetOptions& options,
    DatasetParts& parts) {
  const std::int64_t count = samples.inputs.size();
  if (count < 2) {
    bad_shape("one sample cannot be split", samples.file);
  }
  std::vector<std::int64_t> groups = samples.classes;
  groups.resize(static_cast<std::size_t>(count)); // one without classes
  const SplitSamples dealt = split_samples(
      groups,
      [](std::int64_t i) { return format("{}", i); },
      options.split,
      samples.file);
  for (const std::int64_t group : dealt.single_groups) {
    parts.notes.push_back(
        format("class {} has one sample, which is for training", group));
  }
  const auto part = [&](const std::vector<std::int64_t>& indices,
                        TransformOptions transform) {
    return subset(
        std::make_shared<ArrayDataset>(samples, std::move(transform)),
        indices);
  };
  parts.train = part(dealt.train, options.transform);
  parts.test = part(dealt.val, for_validation(options.transform));
  parts.notes.push_back(format(
      "no part for validation: {} of {} samples are taken for it, by a hash of "
      "their numbers",
      dealt.val.size(),
      count));
}

} // namespace

bool is_channels_last(const std::vector<std::int64_t>& shape) {
  const auto is_count = [](std::int64_t size) {
    return size == 1 || size == 3 || size == 4;
  };
  return shape.size() == 3 && is_count(shape[2]) && !is_count(shape[0]);
}

DatasetParts array_parts(
    std::vector<ArrayPart> parts,
    const DatasetOptions& options,
    const ArrayNames& names) {
  check_parts(parts);
  if (!options.augment.steps.empty()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.open",
         .message = "only image files can be augmented",
         .hint = "--augment none",
         .path = parts.front().file,
         .detail = "E_DATA_OPTION"});
  }
  const TargetFormat& target = parts.front().target;
  Classes classes;
  if (target.kind == TargetKind::kClasses) {
    classes = target.shape.empty() ? classes_of(parts, names)
                                   : Classes{.count = classes_in_masks(parts)};
  }
  DatasetParts made{.notes = classes.notes};
  std::vector<ArraySamples> samples;
  samples.reserve(parts.size());
  for (ArrayPart& part : parts) {
    samples.push_back(samples_of(std::move(part), classes, names));
    samples.back().is_channels_last =
        is_channels_last(samples.back().inputs.shape);
  }
  if (samples.size() == 1) {
    split_part(std::move(samples[0]), options, made);
    return made;
  }
  made.train =
      std::make_shared<ArrayDataset>(std::move(samples[0]), options.transform);
  made.test = std::make_shared<ArrayDataset>(
      std::move(samples[1]),
      for_validation(options.transform));
  return made;
}

} // namespace lockstep::internal
