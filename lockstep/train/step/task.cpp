// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/task.h"

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/where.h>
#include <c10/util/Type.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/internal/uncounted.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/run_names.h"
#include "lockstep/train/step/cross_entropy.h"
#include "lockstep/train/step/model_options.h"

namespace lockstep::train {
namespace {

[[noreturn]] void refuse_task(
    std::string_view detail,
    std::string message,
    std::string hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.task",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = std::string(detail)});
}

struct TaskContext {
  const Dataset& data;
  double label_smoothing = 0.0;
  const std::vector<double>& class_weights;
};

/// One row of the table of tasks.
struct Entry {
  std::string_view name = {};
  TargetKind kind = TargetKind::kNone;
  /// Dimensions of one target; -1: any.
  std::int64_t dims = -1;
  /// "one class for each sample".
  std::string_view targets = {};
  /// What its metrics take.
  MetricTask measured = MetricTask::kOneLabel;
  Task (*make)(const TaskContext& context) = nullptr;

  [[nodiscard]] bool takes(const TargetFormat& format) const {
    return format.kind == kind &&
           (dims == -1 || std::ssize(format.shape) == dims);
  }
};

// "auto" takes the first that fits.
constexpr std::array kEntries{
    Entry{
        "classification",
        TargetKind::kClasses,
        0,
        "a class for each sample",
        MetricTask::kOneLabel,
        [](const TaskContext& context) {
          return classification(
              context.label_smoothing,
              context.class_weights,
              outputs_of(context.data));
        }},
    Entry{
        "segmentation",
        TargetKind::kClasses,
        2,
        "a mask of classes for each sample",
        MetricTask::kSegmentation,
        [](const TaskContext& context) {
          return segmentation(
              context.data.num_classes(),
              /*ignore_index=*/{},
              context.class_weights,
              context.label_smoothing);
        }},
    Entry{
        "regression",
        TargetKind::kValues,
        -1,
        "values for each sample",
        MetricTask::kRegression,
        [](const TaskContext& context) {
          const TargetFormat targets = context.data.target_format();
          return regression(targets.shape.size() == 1 ? targets.numel() : 1);
        }},
    Entry{
        "multilabel",
        TargetKind::kValues,
        1,
        "a row of zeros and ones for each sample",
        MetricTask::kMultilabel,
        [](const TaskContext& context) {
          return multi_label(context.data.target_format().numel());
        }},
};

const Entry& entry_for(const Dataset& data, std::string_view name) {
  const TargetFormat targets = data.target_format();
  const auto* const found =
      std::ranges::find_if(kEntries, [&](const Entry& entry) {
        return name == "auto" ? entry.takes(targets) : entry.name == name;
      });
  if (targets.kind == TargetKind::kNone) {
    refuse_task(
        "E_TASK",
        "the data have no targets, so there is nothing to train for",
        "give the data targets, or the run a task of the program's own");
  }
  if (targets.kind == TargetKind::kStructure) {
    refuse_task(
        "E_TASK",
        "the targets are of the program's own type, for which no task is known",
        "give the run a task of the program's own: OwnParts::task");
  }
  if (found == kEntries.end()) {
    refuse_task(
        "E_TASK",
        name == "auto" ? std::string("no task is for such targets")
                       : format(
                             "unknown task '{}'; expected one of {}",
                             escape(name),
                             join(task_names(), ", ")));
  }
  if (!found->takes(targets)) {
    refuse_task(
        "E_TASK",
        format(
            "the task {} needs {}; the data have other targets",
            found->name,
            found->targets),
        "--task auto takes the one that the data are for");
  }
  return *found;
}

bool tells_any_of(const Metric& metric, const std::vector<MetricInfo>& others) {
  return std::ranges::any_of(metric.infos(), [&](const MetricInfo& info) {
    return std::ranges::find(others, info.name, &MetricInfo::name) !=
           others.end();
  });
}

void choose_metric(
    Task& task,
    const Entry& entry,
    std::string_view metric,
    const Dataset& data) {
  const std::vector<MetricInfo> infos = infos_of(task.metrics);
  const auto most = metric.starts_with("top")
                        ? parse_number<std::int64_t>(metric.substr(3))
                        : std::nullopt;
  if (most && *most > outputs_of(data) && outputs_of(data) > 0) {
    refuse_task(
        "E_METRIC",
        format("{} of {} classes is always 100", metric, outputs_of(data)),
        "--metric top1");
  }
  const bool is_measured =
      std::ranges::find(infos, metric, &MetricInfo::name) != infos.end();
  if (metric != kLossName && !is_measured) {
    std::shared_ptr<const Metric> chosen = make_metric(
        metric,
        {.task = entry.measured,
         .num_classes = outputs_of(data),
         .ignore_index = entry.measured == MetricTask::kOneLabel
                             ? std::optional(kUncountedClass)
                             : std::nullopt});
    task.best = chosen->infos().front().name;
    // top3 brings top1 and top5 along: no number twice.
    std::erase_if(task.metrics, [&](const auto& other) {
      return tells_any_of(*chosen, infos_of({&other, 1}));
    });
    task.metrics.push_back(std::move(chosen));
    return;
  }
  task.best = metric;
}

} // namespace

namespace internal {

void raise_other_type(
    std::string_view what,
    const AnyStructure& found,
    const std::type_info& expected) {
  refuse_task(
      "E_TASK",
      format(
          "the task takes {} of the type {}, and the {} {}",
          what,
          c10::demangle(expected.name()),
          what == "outputs" ? "model gives" : "data have",
          found.describe()),
      "the types of the task's functions are those of the model's forward and "
      "of the data's targets");
}

} // namespace internal

BestBy Task::best_by(bool has_test) const {
  if (!has_test) {
    return {.column = std::string(kTrainLossColumn), .better = Better::kLower};
  }
  const std::vector<MetricInfo> infos = infos_of(metrics);
  if (best == kLossName || (best.empty() && infos.empty())) {
    return {};
  }
  const auto found = best.empty()
                         ? infos.begin()
                         : std::ranges::find(infos, best, &MetricInfo::name);
  if (found == infos.end()) {
    std::vector<std::string> names{std::string(kLossName)};
    for (const MetricInfo& info : infos) {
      names.push_back(info.name);
    }
    const std::string near = nearest(best, names);
    refuse_task(
        "E_METRIC",
        format(
            "the task does not measure '{}'; it measures {}",
            escape(best),
            join(names, ", ")),
        near.empty() ? "" : format("did you mean {}?", near));
  }
  return {
      .column = format("{}{}", kTestPrefix, found->name),
      .better = found->better};
}

Task classification(
    double label_smoothing,
    const std::vector<double>& class_weights,
    std::int64_t num_classes) {
  const bool has_top5 = num_classes == 0 || num_classes > 5;
  Task task{
      .name = "classification",
      .loss = cross_entropy(label_smoothing, kUncountedClass, class_weights),
      .test_loss = cross_entropy(),
      .metrics = {accuracy(
          has_top5 ? std::vector<std::int64_t>{1, 5} : std::vector{1L},
          {.ignore_index = kUncountedClass})},
      .predict = [](const at::Tensor& outputs) { return outputs.argmax(1); }};
  task.divisor = counted_divisor(kUncountedClass, class_weights);
  task.counted = counted_divisor(kUncountedClass, {});
  return task;
}

namespace {

// 0 where no pixel is counted, of which the mean is no number.
LossFunction mask_loss(
    double label_smoothing,
    std::int64_t ignore_index,
    const std::vector<double>& class_weights) {
  return
      [=,
       entropy = cross_entropy(label_smoothing, ignore_index, class_weights)](
          const at::Tensor& outputs,
          const at::Tensor& targets) {
        return at::where(
            targets.ne(ignore_index).any(),
            entropy(outputs, targets),
            outputs.select(1, 0).sum().mul(0));
      };
}

} // namespace

Task segmentation(
    std::int64_t num_classes,
    std::optional<std::int64_t> ignore_index,
    const std::vector<double>& class_weights,
    double label_smoothing) {
  const std::int64_t ignored =
      ignore_index.value_or(uncounted_pixel(num_classes));
  Task task{
      .name = "segmentation",
      .loss = mask_loss(label_smoothing, ignored, class_weights),
      .test_loss = mask_loss(/*label_smoothing=*/0.0, ignored, {}),
      .metrics = {segmentation_metrics(num_classes, {.ignore_index = ignored})},
      .predict = [](const at::Tensor& outputs) { return outputs.argmax(1); }};
  task.divisor = counted_divisor(ignored, class_weights);
  task.counted = counted_divisor(ignored, {});
  return task;
}

namespace {

// PyTorch's losses of values would broadcast.
void check_same_shape(const at::Tensor& outputs, const at::Tensor& targets) {
  if (outputs.sizes() != targets.sizes()) {
    refuse_task(
        "E_TASK",
        format(
            "outputs and targets differ in shape; expected {}, got {}",
            c10::str(targets.sizes()),
            c10::str(outputs.sizes())),
        "values [N] are targets [N, 1] of a model with one output");
  }
}

} // namespace

Task multi_label(std::int64_t num_labels) {
  return {
      .name = "multilabel",
      .loss =
          [](const at::Tensor& outputs, const at::Tensor& targets) {
            check_same_shape(outputs, targets);
            return at::binary_cross_entropy_with_logits(outputs, targets);
          },
      .metrics = {multilabel_metrics(num_labels)},
      .predict = [](const at::Tensor& outputs) { return outputs.gt(0); }};
}

Task regression(std::int64_t num_values) {
  return {
      .name = "regression",
      .loss =
          [](const at::Tensor& outputs, const at::Tensor& targets) {
            check_same_shape(outputs, targets);
            return at::mse_loss(outputs, targets);
          },
      .metrics = {regression_metrics({.num_outputs = num_values})}};
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  names.reserve(kEntries.size());
  for (const Entry& entry : kEntries) {
    names.emplace_back(entry.name);
  }
  return names;
}

Task task_for(
    const Dataset& data,
    std::string_view name,
    std::string_view metric,
    double label_smoothing,
    const std::vector<double>& class_weights) {
  const Entry& entry = entry_for(data, name);
  Task task = entry.make(
      {.data = data,
       .label_smoothing = label_smoothing,
       .class_weights = class_weights});
  if (!class_weights.empty() && !task.divisor) {
    refuse_task(
        "E_FLAGS",
        format("--class-weights: the task {} has no classes", entry.name),
        "leave it out");
  }
  if (metric != "auto") {
    choose_metric(task, entry, metric, data);
  }
  return task;
}

} // namespace lockstep::train
