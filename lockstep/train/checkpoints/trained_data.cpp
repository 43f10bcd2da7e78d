// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/trained_data.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"

namespace lockstep::train {
namespace {

struct KindName {
  TargetKind kind = TargetKind::kNone;
  std::string_view name = {};
};
constexpr std::array kKinds{
    KindName{TargetKind::kNone, "none"},
    KindName{TargetKind::kClasses, "classes"},
    KindName{TargetKind::kValues, "values"},
    KindName{TargetKind::kStructure, "structure"},
};

std::string_view name_of_kind(TargetKind kind) {
  return std::ranges::find(kKinds, kind, &KindName::kind)->name;
}

[[noreturn]] void bad_data(std::string message) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.state",
       .message = "'data' of the checkpoint: " + std::move(message),
       .hint = "'lockstep ckpt show FILE data' prints it",
       .detail = "E_BAD_STATE"});
}

TargetKind to_kind(const std::string& name) {
  const auto* const found = std::ranges::find(kKinds, name, &KindName::name);
  if (found == kKinds.end()) {
    bad_data(format("unknown kind of targets '{}'", escape(name)));
  }
  return found->kind;
}

// Errors: throws kMismatch unless all are above 0.
std::vector<std::int64_t> to_sizes(const ckpt::Entry& entry) {
  auto sizes = entry.to<std::vector<std::int64_t>>();
  if (std::ranges::any_of(sizes, [](std::int64_t size) { return size < 1; })) {
    bad_data(format("{} must be sizes above 0", entry.place()));
  }
  return sizes;
}

[[noreturn]] void other_data(std::string message) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = std::move(message),
       .hint = "go on with the data of the run; a new run may begin with "
               "--initial-checkpoint",
       .detail = "E_OTHER_DATA"});
}

// "classes [H, W]", for messages.
std::string target_text(const TargetFormat& target) {
  std::vector<std::string> sides;
  sides.reserve(target.shape.size());
  for (const std::int64_t side : target.shape) {
    sides.push_back(std::to_string(side));
  }
  return format("{} [{}]", name_of_kind(target.kind), join(sides, ", "));
}

// A mask may have another size: models take many.
bool is_other_target(const TargetFormat& was, const TargetFormat& now) {
  return was.kind != now.kind || was.shape.size() != now.shape.size() ||
         (was.kind == TargetKind::kValues && was.shape != now.shape);
}

void compare(const TrainedData& was, const TrainedData& now) {
  if (is_other_target(was.target, now.target)) {
    other_data(format(
        "the checkpoint was trained on targets of {}, the data have {}",
        target_text(was.target),
        target_text(now.target)));
  }
  if (was.num_classes != now.num_classes) {
    other_data(format(
        "the checkpoint was trained on {}, the data have {}",
        counted(
            static_cast<std::uint64_t>(was.num_classes),
            "class",
            "classes"),
        now.num_classes));
  }
  if (was.class_names.empty() || now.class_names.empty() ||
      was.class_names == now.class_names) {
    return;
  }
  for (std::size_t i = 0;
       i < std::min(was.class_names.size(), now.class_names.size());
       ++i) {
    if (was.class_names[i] != now.class_names[i]) {
      other_data(format(
          "class {} of the checkpoint is '{}', that of the data is '{}'",
          i,
          escape(was.class_names[i]),
          escape(now.class_names[i])));
    }
  }
  other_data(format(
      "the checkpoint has {} names of values, the data have {}",
      was.class_names.size(),
      now.class_names.size()));
}

} // namespace

std::int64_t TrainedData::num_outputs() const {
  return target.kind == TargetKind::kValues ? target.numel() : num_classes;
}

std::string TrainedData::name_of(std::int64_t index) const {
  const auto place = static_cast<std::size_t>(index);
  return place < class_names.size() ? class_names[place]
                                    : std::to_string(index);
}

std::vector<std::string> TrainedData::names() const {
  std::vector<std::string> all;
  all.reserve(static_cast<std::size_t>(num_outputs()));
  for (std::int64_t i = 0; i < num_outputs(); ++i) {
    all.push_back(name_of(i));
  }
  return all;
}

OutputKind output_kind(const TrainedData& data) {
  const std::size_t dims = data.target.shape.size();
  switch (data.target.kind) {
    case TargetKind::kValues:
      return dims > 1                    ? OutputKind::kMaps
             : data.task == "multilabel" ? OutputKind::kLabels
                                         : OutputKind::kValues;
    case TargetKind::kClasses:
      if (dims == 0 || dims == 2) {
        return dims == 0 ? OutputKind::kClasses : OutputKind::kMasks;
      }
      break;
    case TargetKind::kNone:
    case TargetKind::kStructure:
      break;
  }
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "train.use",
       .message = "what the model's outputs mean is not known: it was not "
                  "trained for one class, labels, values or a mask",
       .detail = "E_TASK"});
}

TrainedData trained_data(const Dataset& data, const TrainConfig& config) {
  return {
      .sample_shape = data.sample_shape(),
      .target = data.target_format(),
      .num_classes = data.num_classes(),
      .class_names = data.class_names(),
      .pixels = data.pixel_format(),
      .task = config.task,
      .metric = config.metric};
}

ckpt::Value to_value(const TrainedData& data) {
  return ckpt::Value::dict(
      {{"sample_shape", ckpt::Value(data.sample_shape)},
       {"target", name_of_kind(data.target.kind)},
       {"target_shape", ckpt::Value(data.target.shape)},
       {"num_classes", data.num_classes},
       {"class_names", ckpt::Value(data.class_names)},
       {"pixels",
        ckpt::Value::dict(
            {{"shape", ckpt::Value(data.pixels.shape)},
             {"mean", ckpt::Value(data.pixels.mean)},
             {"std", ckpt::Value(data.pixels.std)}})},
       {"task", data.task},
       {"metric", data.metric}});
}

TrainedData to_trained_data(const ckpt::Value& saved) {
  const ckpt::Entry entry(saved, std::string(kDataPart));
  const ckpt::Entry pixels = entry["pixels"];
  TrainedData data{
      .sample_shape = to_sizes(entry["sample_shape"]),
      .target =
          {.kind = to_kind(entry["target"].to<std::string>()),
           .shape = to_sizes(entry["target_shape"])},
      .num_classes = entry["num_classes"].to<std::int64_t>(),
      .class_names = entry["class_names"].to<std::vector<std::string>>(),
      .pixels =
          {.shape = to_sizes(pixels["shape"]),
           .mean = pixels["mean"].to<std::vector<float>>(),
           .std = pixels["std"].to<std::vector<float>>()},
      .task = entry["task"].to<std::string>(),
      .metric = entry["metric"].to<std::string>()};
  if (data.num_classes < 0 || data.sample_shape.empty()) {
    bad_data("its numbers are out of range");
  }
  return data;
}

StatePart data_part(const TrainedData& data) {
  return {
      .key = std::string(kDataPart),
      .save = [data](ValueBuilder&) { return to_value(data); },
      .load =
          [data](const ckpt::Value& saved) {
            compare(to_trained_data(saved), data);
          },
      .if_missing = IfMissing::kIgnore};
}

} // namespace lockstep::train
