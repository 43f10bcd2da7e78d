// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/metrics/metric.h"

namespace lockstep {
namespace {

using MetricFactory = std::unique_ptr<Metric> (*)(const MetricContext&);

std::unique_ptr<Metric> make_confusion(const MetricContext& context) {
  return confusion(context.num_classes, {.ignore_index = context.ignore_index});
}

std::unique_ptr<Metric> make_accuracy(const MetricContext& context) {
  return accuracy({1, 5}, {.ignore_index = context.ignore_index});
}

std::unique_ptr<Metric> make_auroc(const MetricContext& context) {
  return auroc(context.num_classes, {.ignore_index = context.ignore_index});
}

std::unique_ptr<Metric> make_segmentation(const MetricContext& context) {
  return segmentation_metrics(
      context.num_classes,
      {.ignore_index =
           context.ignore_index.value_or(SegmentationOptions::kUsual)});
}

std::unique_ptr<Metric> make_multilabel(const MetricContext& context) {
  MultilabelOptions options;
  options.threshold = context.threshold.value_or(options.threshold);
  return multilabel_metrics(context.num_classes, options);
}

std::unique_ptr<Metric> make_multilabel_auroc(const MetricContext& context) {
  return multilabel_auroc(context.num_classes);
}

std::unique_ptr<Metric> make_regression(const MetricContext& context) {
  return regression_metrics({.num_outputs = context.num_classes});
}

// Of maps: all pixels are alike.
std::unique_ptr<Metric> make_map_regression(const MetricContext& /*context*/) {
  return regression_metrics();
}

std::unique_ptr<Metric> make_pck(const MetricContext& context) {
  PckOptions options{.num_points = context.num_classes};
  options.threshold = context.threshold.value_or(options.threshold);
  return pck(options);
}

struct MetricKind {
  MetricTask task = MetricTask::kOneLabel;
  std::string_view name = {};
  MetricFactory make = nullptr;

  // Their names depend on the kind alone.
  [[nodiscard]] std::vector<MetricInfo> infos() const {
    return make({.task = task, .num_classes = 2})->infos();
  }
};

constexpr std::array kKinds{
    MetricKind{MetricTask::kOneLabel, "accuracy", make_accuracy},
    MetricKind{MetricTask::kOneLabel, "confusion", make_confusion},
    MetricKind{MetricTask::kOneLabel, "auroc", make_auroc},
    MetricKind{MetricTask::kMultilabel, "multilabel", make_multilabel},
    MetricKind{MetricTask::kMultilabel, "auroc", make_multilabel_auroc},
    MetricKind{MetricTask::kSegmentation, "segmentation", make_segmentation},
    MetricKind{MetricTask::kRegression, "regression", make_regression},
    MetricKind{MetricTask::kHeatMaps, "pck", make_pck},
    MetricKind{MetricTask::kHeatMaps, "regression", make_map_regression},
};

std::string_view task_text(MetricTask task) {
  constexpr std::array<std::string_view, 5> kTexts{
      "classification with one label",
      "classification with several labels",
      "segmentation",
      "regression",
      "heat maps"};
  return kTexts[static_cast<std::size_t>(task)];
}

// Another of a metric's numbers first.
class WithHeadline final : public Metric {
 public:
  WithHeadline(std::unique_ptr<Metric> metric, std::size_t headline)
      : metric_(std::move(metric)), headline_(headline) {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    return reordered(metric_->infos());
  }

  [[nodiscard]] std::int64_t size() const override {
    return metric_->size();
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    return metric_->sums(outputs, targets);
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    return reordered(metric_->values(sums));
  }

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    return metric_->tables(sums, class_names);
  }

 private:
  template <class T>
  [[nodiscard]] std::vector<T> reordered(std::vector<T> list) const {
    const auto chosen = list.begin() + static_cast<std::ptrdiff_t>(headline_);
    std::rotate(list.begin(), chosen, chosen + 1);
    return list;
  }

  std::unique_ptr<Metric> metric_;
  std::size_t headline_;
};

// "top3" beside the usual two; null for another name.
std::unique_ptr<Metric> make_top(
    std::string_view name,
    const MetricContext& context) {
  if (context.task != MetricTask::kOneLabel || !name.starts_with("top")) {
    return nullptr;
  }
  const auto k = parse_number<std::int64_t>(name.substr(3), 1);
  if (!k) {
    return nullptr;
  }
  std::vector<std::int64_t> top{*k};
  for (const std::int64_t usual : {1, 5}) {
    if (usual != *k) {
      top.push_back(usual);
    }
  }
  return accuracy(std::move(top), {.ignore_index = context.ignore_index});
}

[[noreturn]] void refuse_name(
    std::string_view name,
    const MetricContext& context) {
  const std::vector<std::string> names = metric_names(context.task);
  const std::string near = nearest(name, names);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "metrics.make",
       .message = format(
           "no metric of {} is called '{}'",
           task_text(context.task),
           escape(name)),
       .hint = near.empty() ? "metrics are " + join(names, ", ")
                            : "did you mean '" + near + "'?",
       .detail = "E_METRIC_NAME"});
}

} // namespace

std::unique_ptr<Metric> make_metric(
    std::string_view name,
    const MetricContext& context) {
  for (const MetricKind& kind : kKinds) {
    if (kind.task == context.task && kind.name == name) {
      return kind.make(context);
    }
  }
  if (auto metric = make_top(name, context)) {
    return metric;
  }
  for (const MetricKind& kind : kKinds) {
    if (kind.task != context.task) {
      continue;
    }
    const std::vector<MetricInfo> infos = kind.infos();
    const auto found = std::ranges::find(infos, name, &MetricInfo::name);
    if (found != infos.end()) {
      return std::make_unique<WithHeadline>(
          kind.make(context),
          static_cast<std::size_t>(found - infos.begin()));
    }
  }
  refuse_name(name, context);
}

std::vector<std::string> metric_names(MetricTask task) {
  std::vector<std::string> names;
  for (const MetricKind& kind : kKinds) {
    if (kind.task != task) {
      continue;
    }
    names.emplace_back(kind.name);
    for (const MetricInfo& info : kind.infos()) {
      if (info.name != kind.name) {
        names.push_back(info.name);
      }
    }
  }
  return names;
}

} // namespace lockstep
